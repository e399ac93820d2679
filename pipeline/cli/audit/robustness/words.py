"""What is said of distances, attacks and images alike in the terminal, on the page and in the figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

BOUNDS = {"upper": "upper bounds", "lower": "lower bounds of the smoothed model", "exact": "exact"}
WHOSE = {
    "paper": "all images of a group, those classified wrongly at distance 0",
    "correct": "the images classified correctly alone",
}
GREYS = 255
Entry = Mapping[str, Any]


def settings_text(found: Entry) -> str:
    """``deepfool: steps 100, candidates 10, ...``: the attack with its settings, as every output is stamped."""
    told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in found["settings"].items())
    return f"{found['attack']}: {told}" if told else str(found["attack"])


def images_text(data: Entry, parameters: Entry) -> str:
    """How many images were audited, and of what shape."""
    said = f"{data['audited']:,} images"
    if data["audited"] < data["rows"]:
        said = f"{data['audited']:,} of {data['rows']:,} images"
        if parameters["points"]:
            said += f", drawn with seed {parameters['seed']}"
    return f"{said}; {' x '.join(map(str, data['shape']))} (channels x height x width)"


def scale_text(shape: Sequence[int]) -> str:
    """What a distance of 1 is in grey levels."""
    values = math.prod(shape)
    return (
        f"a distance of 1, spread evenly, changes each of the {values:,} values by {GREYS / math.sqrt(values):.2g}/255"
    )
