"""The audits that the command line offers: each module here is one, ``loss_ratio`` being ``audit loss-ratio``.

A module offers ``Settings`` (its options), ``EXAMPLES`` (the end of its help), ``PAGE`` (where more is said), ``FILES``
(what it writes), and ``from_files(settings) -> Result``, itself or in its module ``document``; where it needs them,
``USAGE`` and ``COMMAND`` (its name). Its docstring is its description, the first line its line in the list. What the
user can mend is a ValueError or OSError, which the entry turns into one message and status 2. Every ``--help`` imports
all of the modules, so importing one must be cheap.
"""
