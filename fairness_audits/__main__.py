"""``python -m fairness_audits`` is the command ``fairness-audits``."""

from fairness_audits.cli.entry import main

if __name__ == "__main__":
    raise SystemExit(main())
