# audit results -> tidy rows; tables and figures -> one page, of a run and of the references


rule collect:
    message:
        "collect {wildcards.study}"
    input:
        audits=lambda w: workflow_config.files("audit", w.study),
    output:
        rows="results/rows/{scale}/{study}.parquet",
    params:
        cfg=lambda w: encoded(workflow_config.collect(w.study)),
        code=workflow_config.code("collect"),
    log:
        "results/logs/{scale}/collect/{study}.log",
    benchmark:
        "results/benchmarks/{scale}/collect/{study}.tsv"
    resources:
        **workflow_config.resources.asked("collect"),
    priority: 100000
    group:
        "tables_{study}"
    shell:
        "python -m pipeline.stages.collect --study {wildcards.study} --scale {wildcards.scale}"
        " --audits {params.cfg:q} --output {output.rows} > {log} 2>&1"


for name, below, studies, scale in (
    ("report", "results/", workflow_config.studies, workflow_config.scale),
    ("figures", "results/reference/", workflow_config.referenced, "reference"),
):

    rule:
        name:
            name
        message:
            "page of the references" if scale == "reference" else "report"
        input:
            index=[f"{below}tables/{study}/index.json" for study in studies],
            artefacts=[workflow_config.artefact_files(study, below) for study in studies],
        output:
            html=f"{below}report.html",
            summary=f"{below}summary.txt",
        params:
            scale=scale,
            below=below,
            code=workflow_config.code("report"),
        log:
            f"results/logs/{scale}/report.log",
        benchmark:
            f"{below}benchmarks/{scale}/report/all.tsv"
        resources:
            **workflow_config.resources.asked("report"),
        shell:
            "python -m pipeline.stages.report --index {input.index} --figures {params.below}figures"
            " --benchmarks {params.below}benchmarks --scale {params.scale} --output {output.html}"
            " --summary {output.summary} > {log} 2>&1"
