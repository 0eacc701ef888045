"""Every reader of policies accepts every format, and raises the same errors for others."""

import json
import pathlib

import numpy as np
import pytest

from gdlx.envs import game_facts, game_spec
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import policy_files, policy_tables, result_folder
from gdlx.tests.helpers import players, samples

KUHN = "kuhn_poker"
GAME = game_spec.GameSpec(KUHN)
FORMATS = ("unrolled", "table", "unrolled/policy.npz", "table/policy.npz", "policy.csv", "policy.json")


@pytest.fixture(scope="module")
def policies() -> tabular_policies.Policies:
    return players.random_policies(KUHN, 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, policies: tabular_policies.Policies) -> pathlib.Path:
    """The same policies in all formats."""
    tree, played = samples.load_tree(KUHN), players.load_arena(KUHN).env
    place = tmp_path_factory.mktemp("policies")
    (place / "policy.csv").write_text(policy_tables.to_csv(tree, policies))
    (place / "policy.json").write_text(json.dumps(policy_tables.to_json(tree, policies)))
    for name in ("unrolled", "table"):
        (place / name).mkdir()
    result_folder.write_config(
        place / "unrolled", result_folder.Config(GAME, tasks.tree_digest(tree), algorithms.find("cfr"), False)
    )
    result_folder.write_policy(place / "unrolled", policies)
    sampler = algorithms.configure(algorithms.find("os-mccfr"), None, {"table": 8})
    digest = game_facts.probe(played.propnet).digest
    result_folder.write_config(place / "table", result_folder.Config(GAME, digest, sampler, False))
    result_folder.write_table_policy(place / "table", table_policy.from_tabular(policies, played, tree))
    return place


@pytest.mark.parametrize("name", FORMATS)
def test_at_the_sets_of_a_tree(folder: pathlib.Path, policies: tabular_policies.Policies, name: str) -> None:
    loaded = policy_files.load_policies(folder / name, GAME, samples.load_tree(KUHN), player=1)
    for policy, expected in zip(loaded, policies, strict=True):
        np.testing.assert_allclose(policy, expected, atol=1e-6 if "table" in name else 1e-12)


@pytest.mark.parametrize("name", FORMATS)
def test_as_a_hash_table(folder: pathlib.Path, policies: tabular_policies.Policies, name: str) -> None:
    played = players.load_arena(KUHN).env
    loaded = policy_files.load_table_policy(folder / name, GAME, played)
    for policy, expected in zip(
        table_policy.to_tabular(loaded, played, samples.load_tree(KUHN))[0], policies, strict=True
    ):
        np.testing.assert_allclose(policy, expected, atol=1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_of_another_game(folder: pathlib.Path, name: str) -> None:
    other = "biased_rps"
    with pytest.raises(result_folder.ResultError) as at_sets:
        policy_files.load_policies(folder / name, game_spec.GameSpec(other), samples.load_tree(other))
    with pytest.raises(result_folder.ResultError) as as_table:
        policy_files.load_table_policy(folder / name, game_spec.GameSpec(other), players.load_arena(other).env)
    assert str(at_sets.value) == str(as_table.value)
    assert str(folder / name) in str(at_sets.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "nowhere does not exist: name the result folder"),
        ("policy.png", r"policy\.png is not a policy: name the result folder"),
        ("huge.json", "is not a policy of kuhn_poker: .*the probability of 'bet' at '.dealt king.' is 1000"),
        ("trained", "trained holds networks"),
    ],
)
def test_what_holds_no_policy(tmp_path: pathlib.Path, name: str, message: str) -> None:
    (tmp_path / "policy.png").write_text("a picture")
    huge = {"information_set": "(dealt king)", "actions": {"bet": 10**400}}
    (tmp_path / "huge.json").write_text(json.dumps({"policy": {"player1": [huge]}}))
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained" / result_folder.CONFIG).write_text(json.dumps({"kind": result_folder.TRAINING}))
    assert result_folder.is_training(tmp_path / "trained")
    with pytest.raises(policy_files.PolicyFileError, match=message):
        policy_files.load_policies(tmp_path / name, GAME, samples.load_tree(KUHN))
    with pytest.raises(policy_files.PolicyFileError, match=message):
        policy_files.load_table_policy(tmp_path / name, GAME, players.load_arena(KUHN).env)
