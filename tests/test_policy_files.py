"""Every reader of policies accepts every format, and refuses the rest with the same words."""

import json
import pathlib

import numpy as np
import pytest

from gdlx.envs import game_spec, probe
from gdlx.solvers import exports, policy_files, presets, problems, profiles, results, table_policy
from gdlx.tests import players, samples

KUHN = "kuhn_poker"
GAME = game_spec.Game(KUHN)
FORMATS = ("unrolled", "table", "unrolled/policy.npz", "table/policy.npz", "policy.csv", "policy.json")


@pytest.fixture(scope="module")
def policies() -> profiles.Policies:
    return players.random_policies(KUHN, 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, policies: profiles.Policies) -> pathlib.Path:
    """The same policies in all formats."""
    tree, played = samples.tree_of(KUHN), players.arena_of(KUHN).env
    place = tmp_path_factory.mktemp("policies")
    (place / "policy.csv").write_text(exports.to_csv(tree, policies))
    (place / "policy.json").write_text(json.dumps(exports.to_json(tree, policies)))
    for name in ("unrolled", "table"):
        (place / name).mkdir()
    results.write_config(
        place / "unrolled", results.Config(GAME, problems.tree_digest(tree), presets.find("cfr"), False)
    )
    results.write_policy(place / "unrolled", policies)
    sampler = presets.configured(presets.find("os-mccfr"), None, {"table": 8})
    digest = probe.probe(played.net).digest
    results.write_config(place / "table", results.Config(GAME, digest, sampler, False))
    results.write_table_policy(place / "table", table_policy.of_policies(policies, played, tree))
    return place


@pytest.mark.parametrize("name", FORMATS)
def test_at_the_sets_of_a_tree(folder: pathlib.Path, policies: profiles.Policies, name: str) -> None:
    loaded = policy_files.load(folder / name, GAME, samples.tree_of(KUHN), player=1)
    for policy, expected in zip(loaded, policies, strict=True):
        np.testing.assert_allclose(policy, expected, atol=1e-6 if "table" in name else 1e-12)


@pytest.mark.parametrize("name", FORMATS)
def test_as_a_hash_table(folder: pathlib.Path, policies: profiles.Policies, name: str) -> None:
    played = players.arena_of(KUHN).env
    loaded = policy_files.load_table(folder / name, GAME, played)
    for policy, expected in zip(table_policy.at_sets(loaded, played, samples.tree_of(KUHN))[0], policies, strict=True):
        np.testing.assert_allclose(policy, expected, atol=1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_of_another_game(folder: pathlib.Path, name: str) -> None:
    other = "biased_rps"
    with pytest.raises(results.ResultError) as at_sets:
        policy_files.load(folder / name, game_spec.Game(other), samples.tree_of(other))
    with pytest.raises(results.ResultError) as as_table:
        policy_files.load_table(folder / name, game_spec.Game(other), players.arena_of(other).env)
    assert str(at_sets.value) == str(as_table.value)
    assert str(folder / name) in str(at_sets.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "nowhere is not there: name the result folder"),
        ("policy.png", r"policy\.png is not a policy: name the result folder"),
        ("huge.json", "is not a policy of kuhn_poker: .*the probability of 'bet' at '.dealt king.' is 1000"),
        ("trained", "trained holds networks"),
    ],
)
def test_what_holds_no_policy(tmp_path: pathlib.Path, name: str, message: str) -> None:
    (tmp_path / "policy.png").write_text("a picture")
    huge = {"information_set": "(dealt king)", "options": {"bet": 10**400}}
    (tmp_path / "huge.json").write_text(json.dumps({"policy": {"player1": [huge]}}))
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained" / results.CONFIG).write_text(json.dumps({"kind": results.TRAINING}))
    assert results.is_training(tmp_path / "trained")
    with pytest.raises(policy_files.WrongPolicyFile, match=message):
        policy_files.load(tmp_path / name, GAME, samples.tree_of(KUHN))
    with pytest.raises(policy_files.WrongPolicyFile, match=message):
        policy_files.load_table(tmp_path / name, GAME, players.arena_of(KUHN).env)
