"""The audits that the command line offers: each module here is one, ``loss_ratio`` being ``audit loss-ratio``.

Each reads its arguments, computes a result from arrays, and fills one :class:`pipeline.cli.document.AuditDocument`.
A module offers ``add_arguments(parser)`` and ``run(arguments) -> int`` (the exit status). The first line of its
docstring is its line in the list of audits, the docstring its description, ``EXAMPLES`` the end of its help. It
raises ValueError or OSError for what the user can mend; the entry turns these into one message and exit status 2.
Importing it must be cheap: every ``--help`` imports all of them.
"""
