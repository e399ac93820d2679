"""FlipTest: who would be decided otherwise, had they been of the other group?

Each person of one group is matched with a counterpart in the other by a transport map, which moves the whole of one
group onto the other while moving everybody as little as possible. The positive flipset are those who are decided
positively while their counterparts are not; the negative flipset, the reverse. The transparency report ranks the
features in which a flipset differs from its counterparts. Sizes come with intervals; each line of the report with an
interval, a p-value and what they make of it (noise, as the whole group, or it stands out); and the noise floor says how
large flipsets are between groups that are alike.
"""

from __future__ import annotations

from pipeline.cli.options import DATA, DTYPE, NETWORK

EXAMPLES = """\
examples:
  A network of the columns of a file, everything written into a folder:
    python -m pipeline audit fliptest --data rows.parquet --group race \\
        --source Black --target White --predict model.pt --output audit

  A scikit-learn model, which takes text columns too, in both directions; people are named by their id:
    python -m pipeline audit fliptest --data rows.csv --group sex --source Female --target Male --id person \\
        --label hired --predict hiring.py:predict --threshold 0.5 --reverse --output audit
    # hiring.py:  model = joblib.load("model.joblib")
    #             def predict(frame): return model.predict_proba(frame)

  Equalized odds: only people of true label 1, and then of label 0:
    python -m pipeline audit fliptest --data rows.parquet --group race --source Black --target White \\
        --label recidivism --given-label 1 --predict model.pt --output audit_1

  At most 1,000 people of each group, another map, and 39 deals for the noise floor:
    python -m pipeline audit fliptest --data rows.parquet --group race --source Black --target White \\
        --predict model.pt --limit 1000 --map wgan --map-setting steps=5000 --null-draws 39
"""
PAGE = "docs/fliptest.md explains the method, the files and the JSON."
FILES = "audit.json, the page fliptest.html, flipsets.csv, transparency.csv and the figures"
USAGE = "%(prog)s --data FILE --group COLUMN --source LEVEL --target LEVEL\n           --predict MODEL [other options]"
OPTIONS = (
    DATA.format(apart="group", label="")
    + """
--id COLUMN ; text ; a column that names the rows in results; no input of the model
--categorical A,B ; names = ; columns of numbers that are codes of categories
--standardize continuous|none|A,B ; standardization =continuous ; measure columns in standard deviations of both groups
  together: those of more than two values, none, or the named ones. The model sees the columns as they are
--limit N ; whole:1 ; at most N rows of each group, drawn at random (default: all)
[groups]
--group COLUMN ; text ! ; the column with the protected attribute
--source LEVEL ; text ! ; the group whose people are looked at
--target LEVEL ; text ! ; the group that counterparts are sought in
--reverse ; flag ; look at the target group's people too
--given-label ; one:0:1 ; only rows of this true label (equalized odds); needs --label
[model]
--predict MODEL ; text ! ; model.pt (TorchScript), model.pt2 (torch.export), package.module:name or
  path/to/file.py:name, where the name is a network, a function of a data frame of the features, or a function without
  arguments that returns one of these. It gives a decision, a probability or a score for each row, or two columns of
  scores
--threshold T ; number:-inf ; the decision is positive where the score is at least T (default: 0.5 for decisions and
  probabilities)
"""
    + NETWORK
    + DTYPE
    + """
[map]
--map NAME ; text =auto ; entropic: smooth, stable and fast; exact: counterparts are people of the file; wgan: as
  published; see docs/fliptest.md; auto: entropic, and exact where that is poor and the groups are small (default: auto)
--map-setting KEY=VALUE ; text * ; a setting of the map that differs from its file in conf/transport; may be repeated
--null-draws B ; whole:0 ; fit the map B times more, between groups that are dealt at random: the noise floor (default:
  39 where the map is fitted fast, else 0)
--alpha ; number:0:1 =0.05 ; level of tests and intervals
--seed ; whole:0 =0 ; seed of all random numbers
"""
)
