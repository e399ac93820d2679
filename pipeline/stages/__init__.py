"""The stages of the workflow: thin programs that load, call one pure function, and save."""
