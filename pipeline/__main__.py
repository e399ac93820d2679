"""``python -m pipeline audit NAME ...``: audit a model of one's own on data of one's own."""

from pipeline.cli.entry import main

if __name__ == "__main__":
    raise SystemExit(main())
