"""All sentences of an audit, in one file ``NAME.yaml`` for each: Jinja templates of the audit's facts.

    name: subgroups                                                        # the command's
    title: Search for the worst subgroup
    headlines: {rejected: A DIFFERENCE IS SHOWN, not rejected: NO DIFFERENCE IS SHOWN}
    sentence: The {{ rate }} of {{ different | n }} subgroups differs.      # the verdict's
    inconclusive:                                                          # reasons why the audit cannot tell
      - {when: n < 30, text: "Only {{ n }} rows have a finite ratio."}
    caveats:
      held_out_rows: The tests are valid for rows that were not used to build the model.
      small: {when: too_small, text: "{{ too_small | n }} subgroups are not tested."}
      noisy: {each: noisy_directions, text: "{{ noise | g }} % of the direction of {{ attribute }} is noise."}
      reading: {shared: notes}                   # those of shared.yaml under this name that the fact `notes` has
    brief: {question: ..., people: ..., found: ..., rejected: ..., not rejected: ..., besides: ..., limits: ...}
    tested: {rows: ...}                        # the section on what was tested, without empty lines
    texts: {caption: ...}                                                  # other texts, by name

``when`` is a Jinja expression of the facts. ``each`` names a list of facts; the condition and the text are rendered
with each entry. ``besides`` follows the certainty of every outcome. A text is one paragraph: line ends and several
spaces become one space. A fact that a template lacks is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from fairness_audits.arguments import Given
from fairness_audits.messages import SHOWN, enumerated, listed
from fairness_audits.results import formats
from fairness_audits.results.result import Brief, Caveat, Facts, Outcome, Result, Section, Verdict
from fairness_audits.text_files import texts_of


def growth(ratio: float) -> str:
    """Format a ratio in words: ``25.0 % larger``, ``4.588 times as large`` from 2 on, ``3.0 % smaller``."""
    if ratio >= 2:
        return f"{formats.factor(ratio)} times as large"
    return f"{formats.percent(abs(ratio - 1))} {'larger' if ratio >= 1 else 'smaller'}"


INCONCLUSIVE = "CANNOT TELL"
ENVIRONMENT = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
FORMATS = "decimal factor percent points in_points level p_text p_is size span as_typed sentence signed"
ENVIRONMENT.filters |= {name: getattr(formats, name) for name in FORMATS.split()}
ENVIRONMENT.filters |= {
    "n": "{:,}".format,
    "g": "{:g}".format,
    "form": lambda value, form: format(value, form),
    "count": formats.plural,
    "growth": growth,
    "listed": listed,
    "enumerated": enumerated,
    "repr": repr,
}
ENVIRONMENT.globals |= {"SHOWN": SHOWN, "fixed": formats.fixed, "factor": formats.factor}
ENVIRONMENT.globals |= {"points": formats.points, "decimal": formats.decimal}


def _shared(part: str, name: str) -> str:
    return str(texts_of("shared")[part][name])


ENVIRONMENT.globals["shared"] = _shared


@cache
def template(text: str) -> Template:
    return ENVIRONMENT.from_string(text)


def rendered(text: str, facts: Mapping[str, Any]) -> str:
    """Return a template with these facts, as one paragraph."""
    return " ".join(template(text).render(facts).split())


def holds(when: str, facts: Mapping[str, Any]) -> bool:
    """Return whether a condition holds."""
    return template(f"{{{{ 'yes' if {when} }}}}").render(facts) == "yes"


def named(audit: str, name: str, facts: Mapping[str, Any]) -> str:
    """Return one of the other texts of an audit, such as a caption."""
    return rendered(texts_of(audit)["texts"][name], facts)


def tested(audit: str, facts: Mapping[str, Any], given: Given) -> Section:
    """Return the section on what was tested: its lines, and the options that differ from their defaults."""
    lines = [(name, rendered(text, facts)) for name, text in texts_of(audit)["tested"].items()]
    options = "; ".join(f"{name.replace('_', ' ')} {_option_text(value)}".rstrip() for name, value in given.changed)
    return Section("What was tested", (Facts((*((name, text) for name, text in lines if text), ("options", options))),))


def _option_text(value: Any) -> str:
    """Return an option's value as text; a flag needs none."""
    return "" if value is True else listed(value, SHOWN) if isinstance(value, list) else str(value)


def caveats(audit: str, facts: Mapping[str, Any]) -> Iterator[Caveat]:
    """Yield the caveats that apply, in the order of the file."""
    for name, one in texts_of(audit).get("caveats", {}).items():
        yield from _caveats(name, {"text": one} if isinstance(one, str) else one, facts)


def _caveats(name: str, one: Mapping[str, str], facts: Mapping[str, Any]) -> Iterator[Caveat]:
    if "shared" in one:
        for own, text in texts_of("shared")[name].items():
            found = facts[one["shared"]].get(own)
            for entry in found if isinstance(found, list) else [found] if found else []:
                yield Caveat(own, rendered(text, entry if isinstance(entry, Mapping) else {}))
        return
    for entry in facts[one["each"]] if "each" in one else ({},):
        known = {**facts, **entry}
        if holds(one.get("when", "true"), known):
            yield Caveat(name, rendered(one["text"], known))


def result(
    audit: str, said: Mapping[str, Any], concluded: Verdict, given: Given, *, sections: Iterable[Section], **parts: Any
) -> Result:
    """Return the result of an audit: its verdict and the ``parts`` without texts, and the texts of the facts ``said``.

    The section on what was tested, if the audit has one, precedes the other ``sections``.
    """
    texts = texts_of(audit)
    return Result(
        audit=texts["name"],
        title=texts["title"],
        verdict=concluded,
        brief=brief(audit, said, concluded),
        caveats=tuple(caveats(audit, said)),
        sections=(*([tested(audit, said, given)] if "tested" in texts else ()), *sections),
        settings=given,
        **parts,
    )


def verdict(
    audit: str, facts: Mapping[str, Any], rejected: bool | None, own: Mapping[str, Any], decision: str = "rejected"
) -> Verdict:
    """Return the verdict: inconclusive if nothing could be tested (``rejected`` is None) or a reason applies.

    ``decision`` is the key of the decision among the verdict's ``own`` facts of the JSON, with the value null if
    inconclusive. The reasons precede the sentence.
    """
    texts, facts = texts_of(audit), {**facts, "rejected": rejected}
    sentence = rendered(texts["sentence"], facts)
    reason = " ".join(rendered(one["text"], facts) for one in texts["inconclusive"] if holds(one["when"], facts))
    if reason or rejected is None:
        told = f"{reason} {sentence}".strip()
        return Verdict("inconclusive", INCONCLUSIVE, told, {decision: None, **own}, reason or sentence)
    outcome: Outcome = "rejected" if rejected else "not rejected"
    return Verdict(outcome, rendered(texts["headlines"][outcome], facts), sentence, {decision: rejected, **own})


def brief(audit: str, facts: Mapping[str, Any], concluded: Verdict) -> Brief:
    """Return the summary in plain words; it may use the ``verdict``."""
    facts = {**facts, "verdict": concluded}
    texts = {name: rendered(text, facts) for name, text in texts_of(audit)["brief"].items()}
    sure = texts.get(concluded.outcome) or f"The audit cannot tell. {concluded.reason}"
    sure = f"{sure} {texts.get('besides', '')}".strip()
    return Brief(texts["question"], texts["people"], texts["found"], sure, texts["limits"])
