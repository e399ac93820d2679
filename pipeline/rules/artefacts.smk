# the files of a study: its published numbers, its tables and figures, and their captions in Snakemake's own report


def published(wildcards):
    """Return the files with the study's published numbers and claims."""
    claims = run.committed(f"data/published/claims/{wildcards.study}.yaml")
    return [run.committed(f"data/published/{wildcards.study}.csv"), *filter(os.path.isfile, [claims])]


def drawn(study):
    """Return the tables and figures of a study as outputs, with {study} in their paths. Snakemake's report shows one file of each."""

    def output(path):
        stem, suffix = os.path.splitext(os.path.basename(path))
        if suffix not in (".csv", ".png"):
            return path
        caption = os.path.abspath(f"results/captions/{study}/{stem}.rst")
        return report(path, caption=caption, category="{study}", labels={"artefact": stem})

    return [output(path) for path in registry.patterns(study)]
