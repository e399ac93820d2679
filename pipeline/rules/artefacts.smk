# A single table or figure: of a run, and (results/reference/) of the references.
#
# `draw` and `draw_reference` make all tables and figures of a study and their index. These two rules let one be asked for by its
# path, and give Snakemake's own report its captions.


def drawn_from(below):
    """Return a function for the files of a study's reference, which plans to draw again what somebody has removed."""

    def files(wildcards):
        index = f"{below}tables/{wildcards.study}/index.json"
        if workflow.is_main_process and os.path.exists(index) and run.incomplete(wildcards.study, below):
            workflow.dag.forcefiles.add(index)
        return run.reference_files(wildcards.study)

    return files


def published(wildcards):
    """Return the study's published numbers, and what the paper claims of them."""
    return [f"data/published/{wildcards.study}.csv", *run.present(f"data/published/claims/{wildcards.study}.yaml")]


rule table:
    message:
        "{wildcards.name} of {wildcards.study}"
    input:
        index="results/{below}tables/{study}/index.json",
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
        index="results/{below}tables/{study}/index.json",
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


# What Snakemake's report shows.
rule artefacts:
    input:
        [run.artefact_files(study) for study in run.studies],
