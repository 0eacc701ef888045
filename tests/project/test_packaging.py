"""What is built and installed: every package and rulesheet, and no tests."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile

import pytest

from gdlx.tests.helpers import paths

ROOT = paths.ROOT
NOT_SHIPPED = {"tests", "docs", "build", "dist"}


def packages_on_disk() -> set[str]:
    folders = {
        init.parent
        for child in ROOT.iterdir()
        if not child.name.startswith(".") and child.name not in NOT_SHIPPED
        for init in child.rglob("__init__.py")
    }
    return {"gdlx", *(".".join(["gdlx", *folder.relative_to(ROOT).parts]) for folder in folders)}


def test_every_package_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert set(declared) == packages_on_disk()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the source archive and the wheel built from it, from a copy and without a network."""
    folder = tmp_path_factory.mktemp("built")
    leave = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    copy = shutil.copytree(ROOT, folder / "copy", ignore=leave)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(copy)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_the_wheel_holds_the_packages_and_nothing_else(built: pathlib.Path) -> None:
    [wheel] = built.glob("*.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {"gdlx/py.typed"}
    for package in packages_on_disk():
        folder = ROOT.joinpath(*package.split(".")[1:])
        files = [*folder.glob("*.py"), *folder.glob("sheets/*.gdl")]
        expected |= {f"gdlx/{file.relative_to(ROOT).as_posix()}" for file in files}
    assert inside == expected


def test_the_source_archive_holds_no_tests_and_no_documents(built: pathlib.Path) -> None:
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        parts = [pathlib.PurePosixPath(name).parts for name in tar.getnames()]
    folders = {names[1] for names in parts if len(names) > 2}
    assert folders == {package.split(".")[1] for package in packages_on_disk() - {"gdlx"}} | {"gdlx.egg-info"}


def test_the_installed_wheel_runs(built: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """In a new environment outside the repository; only dependencies come from this one."""
    venv.create(tmp_path / "venv", with_pip=False)
    [site] = (tmp_path / "venv").rglob("site-packages")
    [python] = (tmp_path / "venv").glob("*/python")
    [wheel] = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    # A path entry comes after the wheel, and does not run the hook of the editable install in that folder.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))

    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run([python.with_name("gdlx"), "games"], cwd=tmp_path, capture_output=True, text=True, env=clean)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "tictactoe" in ran.stdout
    show = "import gdlx; print(gdlx.__file__)"
    where = subprocess.run([python, "-c", show], capture_output=True, text=True, env=clean)
    assert where.stdout.startswith(str(site))
