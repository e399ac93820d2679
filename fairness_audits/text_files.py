"""The files of sentences in ``texts/``, read once each."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def texts_of(name: str) -> Mapping[str, Any]:
    """Return the content of ``texts/NAME.yaml``: an audit's file, what audits share, or the glossary."""
    import yaml

    place = files("fairness_audits").joinpath("texts", f"{name}.yaml")
    found: Mapping[str, Any] = yaml.safe_load(place.read_text(encoding="utf-8"))
    return found
