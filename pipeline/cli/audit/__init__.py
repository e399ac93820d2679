"""The audits that the command line offers: each module here is one, ``loss_ratio`` being ``audit loss-ratio``.

A module offers ``Settings`` (its options, see :mod:`pipeline.cli.settings`), ``EXAMPLES`` (the end of its help),
``PAGE`` (where more is said), ``FILES`` (what it writes into a folder), and ``from_files(settings) -> Result``, itself
or in its own module ``document``; where it needs them, ``USAGE`` and ``COMMAND`` (its name). The first line of its
docstring is its line in the list of audits, the docstring its description. ``from_files`` raises ValueError or OSError
for what the user can mend; the entry turns these into one message and exit status 2. Importing the module must be
cheap: every ``--help`` imports all of them.
"""
