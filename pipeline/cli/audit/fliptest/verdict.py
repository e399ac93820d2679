"""The JSON document as a page for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.cli.audit.fliptest.document import span
from pipeline.cli.audit.fliptest.evidence import FLIPSETS
from pipeline.cli.page import line, paragraph, titled
from pipeline.flipsets.standing import AS_GROUP, NOISE
from pipeline.messages import listed

SHOWN_LINES = 5
SHOWN_KS = 5
READINGS = (
    f"{NOISE.capitalize()}: the interval covers 0, or there is none. {AS_GROUP.capitalize()}: the shift is there, but "
    "is not shown to be other than everybody's: it does not tell who flips."
)
"""What the words for lines mean, in every place where a reader meets them."""
Entry = Mapping[str, Any]


def page(document: Entry) -> str:
    """The verdict, what it rests on, and what to keep in mind; lines fit the page where that can be helped."""
    parts = [
        f"FlipTest of {document['model']['given']} on {document['data']['path']}",
        paragraph(f"{headline(document['verdict'])}. {document['verdict']['sentence']}", "  "),
        titled("What was tested", _tested(document)),
    ]
    for number, found in enumerate(document["results"]):
        # The sentence of the first direction is the verdict above.
        said = [paragraph(found["sentence"], "  "), ""] if number else []
        parts.append(titled(f"From {found['source']} to {found['target']}", [*said, *_sizes(found, document)]))
        parts += [_report(found, name) for name in FLIPSETS]
        parts.append(titled("How good the map is", _quality(found)))
    parts.append(titled("Keep in mind", [paragraph(text, "  - ", "    ") for text in document["caveats"]]))
    return "\n\n".join(part for part in parts if part) + "\n"


def headline(verdict: Entry) -> str:
    """The verdict in two words: a poor map comes before all else."""
    if not verdict["healthy_map"]:
        return "POOR MAP"
    if verdict["beyond_noise"] is None:
        return "FLIPSETS"
    return "BEYOND NOISE" if verdict["beyond_noise"] else "WITHIN NOISE"


def _tested(document: Entry) -> list[str]:
    data, model, chosen = document["data"], document["model"], document["map"]
    first = document["results"][0]
    both = ", and back" if len(document["results"]) > 1 else ""
    left_out = [f"{count:,} {reason}" for reason, count in data["left_out"].items() if count]
    units = f"; in standard deviations: {listed(data['standardized'], 6)}" if data["standardized"] else ""
    threshold = "as told" if model["threshold_given"] else "by default"
    lines = [
        line("groups", f"{data['group']}: {first['source']} mapped to {first['target']}{both}"),
        line(
            "data",
            f"{data['rows']:,} rows{', without ' + ', '.join(left_out) if left_out else ''}; "
            f"{len(data['features'])} feature{'s' * (len(data['features']) > 1)}{units}",
        ),
        line("model", f"{model['origin']}; {model['output']}, positive from {model['threshold']:g} on ({threshold})"),
        line("map", f"{chosen['name']}{_instead(chosen['poor'])}: {_who(first)}"),
    ]
    if data["given_label"] is not None:
        value = data["label_levels"][data["given_label"]]
        lines.insert(1, line("given", f"{data['label']} is {value!r} (true label {data['given_label']})"))
    return lines


def _instead(poor: Sequence[str]) -> str:
    return f" (in place of {listed(poor)}, which was poor)" if poor else ""


def _who(found: Entry) -> str:
    return f"counterparts are {'people of the file' if found['map']['real_people'] else 'points, not people'}"


def _sizes(found: Entry, document: Entry) -> list[str]:
    n, m, decided = found["n_source"], found["n_target"], found["positives"]
    counts = (
        (found["source"], n, decided["source"]),
        ("their counterparts", n, decided["counterparts"]),
        (found["target"], m, decided["target"]),
    )
    lines = [f"  {'':30}{'people':>9}{'positive':>13}{'share':>10}"]
    lines += [
        f"  {_short(name):30}{people:>9,}{number:>13,}{_percent(number / people):>10}"
        for name, people, number in counts
    ]
    level = f"{100 * (1 - document['parameters']['alpha']):g} % interval"
    floor = found["noise"]
    alike = f"{floor['draws']} deals alike" if floor else ""
    lines += ["", f"  {'':22}{'size':>7}{'share':>9}  {level:^16}{alike:>20}"]
    sizes = [(f"{name} flipset", found["flipsets"][name], name) for name in FLIPSETS]
    for name, entry, key in [*sizes, ("net", found["net"], "net")]:
        noise = span(floor[key]["range"], 0) if floor else ""
        lines.append(
            f"  {name:22}{entry['size']:>7,}{_percent(entry['share']):>9}  {span(entry['interval'], 0):^16}{noise:>20}"
        )
    lines = [text.rstrip() for text in lines]
    return lines


def _report(found: Entry, name: str) -> str:
    """The leading lines of a transparency report."""
    members = found["flipsets"][name]["size"]
    if not members:
        return ""
    ranked = [entry for entry in found["transparency"][name] if entry["rank_mean"] is not None]
    lines = [f"  {'':18}{'shift':>6} {'interval':^15}{'sign':>6}{'rank':>5}{'p':>7} that is"]
    for entry in ranked[:SHOWN_LINES]:
        lines.append(
            f"  {_short(entry['feature'], 18):18}{entry['mean_shift']:>+6.2f} "
            f"{span((entry['mean_shift_ci_low'], entry['mean_shift_ci_high']), 2):^15}{entry['mean_sign']:>+6.2f}"
            f"{entry['rank_sign']:>5.0f}{entry['mean_shift_p_adjusted']:>7.2g} {entry['mean_shift_standing']}"
        )
    hidden = len(ranked) - SHOWN_LINES
    more = f" {hidden} more line{'s' * (hidden > 1)} in transparency.csv." if hidden > 0 else ""
    lines.append(
        paragraph(
            "Mean of person minus counterpart, in standard deviations or in shares of a category, and of its sign with "
            f"its rank; p (adjusted): whether these people shift otherwise than the whole group. {READINGS}{more}"
        )
    )
    return titled(f"How the {members:,} of the {name} flipset differ from their counterparts", lines)


def _quality(found: Entry) -> list[str]:
    quality = found["map"]
    worst = sorted(quality["ks"], key=lambda feature: -quality["ks"][feature])[:SHOWN_KS]
    shown = ", ".join(f"{feature} {quality['ks'][feature]:.3f}" for feature in worst)
    moved = f"L1 {quality['distance']:.2f} on average"
    if quality["compared"]:
        moved += (
            f"; for {quality['compared']} of them {quality['compared_distance']:.2f}, where exact transport needs "
            f"{quality['exact_distance']:.2f}"
        )
    return [
        line("fit", f"Kolmogorov-Smirnov distance to {found['target']}: {shown} (0 is best, above 0.12 is poor)"),
        line("moved", moved),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _short(name: str, width: int = 30) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}."
