"""The command ``fairness-audits NAME ...``: audit a model of your own on data of your own."""

from fairness_audits.cli.entry import main

if __name__ == "__main__":
    raise SystemExit(main())
