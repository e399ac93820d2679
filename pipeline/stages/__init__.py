"""The stages of the workflow: thin programs that load data, call one pure function and save the result."""
