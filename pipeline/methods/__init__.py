"""Methods: ways to obtain a classifier. One file each, with a ``Config`` and ``fit(dataset, config, rngs)``."""
