"""Every loss against the golden values: loss and tangent gradient in float64, within each case's own tolerance.

A small part of the golden set lies in the folder beside this file and always runs; the full set runs where it is found
(`STUDY_GOLDEN`, or shared/golden beside the project). Both have the same format.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from counterparts import COUNTERPARTS, NAN_AS_PRINTED, WITHOUT_COUNTERPART, Case

HERE = Path(__file__).parent
FULL = Path(os.environ.get("STUDY_GOLDEN", HERE.parents[2] / "shared" / "golden"))
PART = HERE / "golden"
SOURCE = FULL if "STUDY_GOLDEN" in os.environ or FULL.exists() else PART


def entries(folder: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((folder / "losses.index.json").read_text())["cases"]
    return cases


def outputs(folder: Path) -> list[Any]:
    """(case, output) of every output with a counterpart."""
    return [
        pytest.param(entry, output, folder, id=f"{folder.parent.name}-{entry['case']}-{output.get('output', 'loss')}")
        for entry in entries(folder)
        for output in (entry, *entry.get("also", []))
        if output["definition"] in COUNTERPARTS and entry["case"] not in WITHOUT_COUNTERPART
    ]


@pytest.mark.parametrize("folder", sorted({PART, SOURCE}), ids=lambda folder: folder.parent.name)
def test_every_definition_is_accounted_for(folder: Path) -> None:
    named = {output["definition"] for entry in entries(folder) for output in (entry, *entry.get("also", []))}
    assert named <= COUNTERPARTS.keys() | WITHOUT_COUNTERPART.keys()
    assert not COUNTERPARTS.keys() & WITHOUT_COUNTERPART.keys()


def test_the_part_in_the_repository_covers_every_counterpart() -> None:
    assert {output.values[1]["definition"] for output in outputs(PART)} == COUNTERPARTS.keys()


@pytest.mark.parametrize(("entry", "output", "folder"), outputs(PART) + (outputs(FULL) if SOURCE == FULL else []))
def test_golden(entry: dict[str, Any], output: dict[str, Any], folder: Path) -> None:
    case = Case(entry, folder)
    loss = COUNTERPARTS[output["definition"]](case)
    if output["expected_loss"] is None:
        assert loss.isfinite() != (output["definition"] in NAN_AS_PRINTED)
        return
    tolerance, expected = output["tolerance"], output["expected_loss"]
    assert abs(loss.item() - expected) <= max(tolerance["loss_atol"], tolerance["loss_rtol"] * abs(expected))
    names = [name for name in output["grad_arrays"] if name not in output.get("nonfinite_gradients", [])]
    if names:
        loss.backward()
    for name in names:
        leaf, theirs = case.leaves[name.split("grad_")[-1]], case.array(name)
        ours = leaf.grad
        if entry["rows_normalised"] and "condition" not in name:
            ours, theirs = (g - (g * leaf.detach()).sum(-1, keepdim=True) * leaf.detach() for g in (ours, theirs))
        allowed = max(tolerance["grad_atol"], tolerance["grad_max_abs_over_max_abs"] * theirs.abs().max().item())
        assert (ours - theirs).abs().max().item() <= allowed
