# a complete run -> data/reference/<study>, which is committed -> the same tables, figures and report without data


# If only a part of the study ran, the other parts are those of the reference so far.
rule record:
    message:
        "record {wildcards.study}"
    input:
        rows="results/rows/{scale}/{study}.parquet",
        datasets=lambda w: run.files("prepare", w.study),
        audits=lambda w: run.made(w.study),
    output:
        recorded=directory("results/reference/{scale}/{study}"),
    params:
        inputs=lambda w: encoded(run.inputs(w.study)),
        code=lambda w: run.code("record", study=w.study),
        fill=lambda w: references.fill_option(run, w.study),
        environment=["--environment", os.environ["RUN_ENVIRONMENT"]] if os.environ.get("RUN_ENVIRONMENT") else [],
        # Not inputs: a change of the times must not trigger a job.
        benchmarks=lambda w: encoded(run.benchmarks(w.study)),
    log:
        "results/logs/{scale}/record/{study}.log",
    shell:
        "printf %s {params.inputs:q} | {one_thread} {python:q} -m pipeline.stages.record --rows {input.rows} {params.fill}"
        " --benchmarks {params.benchmarks:q} {params.environment:q} --output {output.recorded:q} > {log} 2>&1"


# The reference is replaced when its verdicts and claims have been decided, otherwise nothing changes.
rule reference:
    message:
        "reference of {wildcards.study}, with its verdicts and claims"
    input:
        recorded="results/reference/{scale}/{study}",
        published=published,
    output:
        touch("results/reference/{scale}/{study}.recorded"),
    params:
        code=lambda w: run.code("decide", study=w.study),
        reference=lambda w: references.folder(run, w.study),
        all=references.folder(run),
    log:
        "results/logs/{scale}/reference/{study}.log",
    # All studies write to the same two files, so one job runs at a time.
    threads: workflow.resource_settings.cores or 1
    shell:
        "({one_thread} {python:q} -m pipeline.stages.decide --published {input.published:q} --reference {input.recorded:q}"
        " --lists {params.all:q} && rm -rf {params.reference:q}.new && mkdir {params.reference:q}.new"
        " && cp -R {input.recorded:q}/* {params.reference:q}.new && rm -rf {params.reference:q}"
        " && mv {params.reference:q}.new {params.reference:q}) > {log} 2>&1"


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
            code=lambda w: run.code("draw_reference", study=w.study),
            reference=lambda w: references.folder(run, w.study),
        log:
            "results/logs/reference/{study}.log",
        threads: 2
        shell:
            "{one_thread} {python:q} -m pipeline.stages.draw_reference --published {input.published:q}"
            " --reference {params.reference:q} --tables results/reference/tables/{wildcards.study}"
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
        code=lambda w: run.code("decide", study=w.study),
        reference=lambda w: references.folder(run, w.study),
        all=references.folder(run),
    log:
        "results/logs/reference/{study}_verdicts.log",
    # All studies write to the same two files, so one job runs at a time.
    threads: workflow.resource_settings.cores or 1
    shell:
        "{one_thread} {python:q} -m pipeline.stages.decide --published {input.published:q} --reference {params.reference:q}"
        " --lists {params.all:q} > {log} 2>&1"


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
