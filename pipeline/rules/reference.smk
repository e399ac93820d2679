# a complete run -> data/reference/<study>, which is committed -> the same tables, figures and report without data


# If only a part of the study ran, the other parts of the reference stay as they are.
rule reference:
    message:
        "reference of {wildcards.study}"
    input:
        rows="results/rows/{scale}/{study}.parquet",
        datasets=lambda w: run.files("prepare", w.study),
        audits=lambda w: run.made(w.study),
        published=published,
    output:
        touch("results/reference/{scale}/{study}.recorded"),
    params:
        config=lambda w: encoded(run.artefacts(w.study)),
        audits=lambda w: run.files("audit", w.study),
        classifiers=lambda w: run.files("train", w.study),
        fill=lambda w: references.fill_option(run, w.study),
        reference=lambda w: references.folder(run, w.study),
        all=references.folder(run),
        environment=["--environment", os.environ["RUN_ENVIRONMENT"]] if os.environ.get("RUN_ENVIRONMENT") else [],
        # Not inputs: a change of the times must not trigger a job.
        benchmarks=lambda w: encoded(run.benchmarks(w.study)),
    log:
        "results/logs/{scale}/reference/{study}.log",
    shell:
        "printf %s {params.config:q} | {one_thread} {python:q} -m pipeline.stages.artefacts --study {wildcards.study}"
        " --config - --rows {input.rows} --datasets {input.datasets:q} --audits {params.audits:q}"
        " --classifiers {params.classifiers:q} --published {input.published:q} {params.fill}"
        " --record {params.reference:q} --verdicts {params.all:q} --benchmarks {params.benchmarks:q} {params.environment:q}"
        " > {log} 2>&1"


for study in run.declared:

    rule:
        name:
            f"draw_reference_{study}"
        message:
            "tables and figures of {wildcards.study} from its reference"
        input:
            reference=lambda w: references.files(run, w.study),
            published=published,
        output:
            index="results/reference/tables/{study}/index.json",
            artefacts=registry.patterns(study, "results/reference/"),
        wildcard_constraints:
            study=study,
        params:
            code=lambda w: run.code("artefacts", study=w.study),
            reference=lambda w: references.folder(run, w.study),
        log:
            "results/logs/reference/{study}.log",
        threads: 2
        shell:
            "{one_thread} {python:q} -m pipeline.stages.artefacts --study {wildcards.study} --published {input.published:q}"
            " --from-reference {params.reference:q} --tables results/reference/tables/{wildcards.study}"
            " --figures results/reference/figures/{wildcards.study} --index {output.index} --processes {threads} > {log} 2>&1"


# For use after a change of the rules that decide claims.
rule verdicts:
    message:
        "verdicts and claims of {wildcards.study} from its reference"
    input:
        reference=lambda w: references.files(run, w.study),
        published=published,
    output:
        touch("results/reference/{study}.decided"),
    params:
        code=lambda w: run.code("artefacts", study=w.study),
        reference=lambda w: references.folder(run, w.study),
        all=references.folder(run),
    log:
        "results/logs/reference/{study}_verdicts.log",
    # All studies write to the same two files, so one job runs at a time.
    threads: workflow.resource_settings.cores or 1
    shell:
        "{one_thread} {python:q} -m pipeline.stages.artefacts --study {wildcards.study} --published {input.published:q}"
        " --from-reference {params.reference:q} --verdicts {params.all:q} > {log} 2>&1"


use rule page as report_reference with:
    message:
        "report of the reference results"
    input:
        index=expand("results/reference/tables/{study}/index.json", study=references.referenced(run)),
        artefacts=[registry.files(study, "results/reference/") for study in references.referenced(run)],
    output:
        html="results/reference/report.html",
        summary="results/reference/summary.txt",
    params:
        scale="reference",
        folder="results/reference",
        code=run.code("report"),
    log:
        "results/logs/reference/report.log",
    benchmark:
        "results/reference/benchmarks/reference/report/all.tsv"


rule figures:
    input:
        rules.report_reference.output,
        rules.report_reference.input.artefacts,
