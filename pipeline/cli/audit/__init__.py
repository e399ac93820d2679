"""The audits that the command line offers: each module here is one, ``loss_ratio`` being ``audit loss-ratio``.

Each reads its arguments, computes a result from arrays, and fills one :class:`pipeline.cli.document.AuditDocument`.
A module offers ``OPTIONS`` (a table of :mod:`pipeline.cli.options`), ``EXAMPLES`` (the end of its help), ``PAGE``
(where more is said), ``FILES`` (what it writes into a folder), and ``audited(arguments) -> AuditDocument``, itself or
in its own module ``audit``; where it needs them, ``KINDS`` (checks of its own), ``USAGE`` and ``COMMAND`` (its name).
The first line of its docstring is its line in the list of audits, the docstring its description. ``audited`` raises
ValueError or OSError for what the user can mend; the entry turns these into one message and exit status 2. Importing
the module must be cheap: every ``--help`` imports all of them.
"""
