# single tables and figures, of a run (results/) or of the references (results/reference/)
#
# `draw` and `draw_reference` make all tables and figures of a study. These rules make each one available by its path, and give
# Snakemake's own report its captions.


def reference_files(below):
    """Return an input function for the files of a study's reference. It redraws the study if an artefact was deleted."""

    def files(wildcards):
        index = f"{below}tables/{wildcards.study}/index.json"
        if workflow.is_main_process and os.path.exists(index) and run.incomplete(wildcards.study, below):
            workflow.dag.forcefiles.add(index)
        return run.reference_files(wildcards.study)

    return files


def published(wildcards):
    """Return the files with the study's published numbers and claims."""
    return [f"data/published/{wildcards.study}.csv", *run.present(f"data/published/claims/{wildcards.study}.yaml")]


rule table:
    message:
        "{wildcards.name} of {wildcards.study}"
    input:
        index=lambda w: run.index(w.below, w.study, w.name),
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
        name=run.artefact_names("table"),
    params:
        caption=lambda w: run.caption(w.study, w.name),
    localrule: True
    shell:
        "touch -c {output}"


rule figure:
    message:
        "{wildcards.name} of {wildcards.study}"
    input:
        index=lambda w: run.index(w.below, w.study, w.name),
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
        name=run.artefact_names("figure"),
    params:
        caption=lambda w: run.caption(w.study, w.name),
    localrule: True
    shell:
        "touch -c {output}"


# Everything in Snakemake's report.
rule artefacts:
    input:
        [run.artefact_files(study) for study in run.studies],
