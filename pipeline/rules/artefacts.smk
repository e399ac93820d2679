# single tables and figures, of a run (results/) or of the references (results/reference/)
#
# `draw` and `draw_reference` make all tables and figures of a study. These rules make each one available by its path, and give
# Snakemake's own report its captions.


def index(wildcards):
    """Return the index that is made together with an artefact."""
    registry.entry(wildcards.study, wildcards.name)
    return f"results/{wildcards.below}tables/{wildcards.study}/index.json"


def reference_files(below):
    """Return an input function for the files of a study's reference. It redraws the study if an artefact was deleted."""

    def files(wildcards):
        index = f"{below}tables/{wildcards.study}/index.json"
        if workflow.is_main_process and os.path.exists(index):
            if not all(map(os.path.isfile, registry.files(wildcards.study, below))):
                workflow.dag.forcefiles.add(index)
        return references.files(run, wildcards.study)

    return files


def published(wildcards):
    """Return the files with the study's published numbers and claims."""
    claims = f"data/published/claims/{wildcards.study}.yaml"
    return [f"data/published/{wildcards.study}.csv", *filter(os.path.isfile, [claims])]


rule table:
    message:
        "{wildcards.name} of {wildcards.study}"
    input:
        index=index,
    output:
        csv=report(
            update("results/{below}tables/{study}/{name}.csv"),
            caption="caption.rst",
            category="{study}",
            labels={"artefact": "{name}"},
        ),
        md=update("results/{below}tables/{study}/{name}.md"),
        tex=update("results/{below}tables/{study}/{name}.tex"),
    wildcard_constraints:
        below="(reference/)?",
        name=registry.names("table", run.declared),
    params:
        caption=lambda w: registry.caption(w.study, w.name),
    localrule: True
    shell:
        "touch -c {output}"


rule figure:
    message:
        "{wildcards.name} of {wildcards.study}"
    input:
        index=index,
    output:
        pdf=update("results/{below}figures/{study}/{name}.pdf"),
        png=report(
            update("results/{below}figures/{study}/{name}.png"),
            caption="caption.rst",
            category="{study}",
            labels={"artefact": "{name}"},
        ),
    wildcard_constraints:
        below="(reference/)?",
        name=registry.names("figure", run.declared),
    params:
        caption=lambda w: registry.caption(w.study, w.name),
    localrule: True
    shell:
        "touch -c {output}"


# Everything in Snakemake's report.
rule artefacts:
    input:
        [registry.files(study) for study in run.studies],
