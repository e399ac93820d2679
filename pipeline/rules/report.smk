# audit results -> tidy rows -> one report


rule collect:
    message:
        "collect {wildcards.study}"
    input:
        audits=lambda w: workflow_config.audit_files(w.study),
        code=workflow_config.code("collect"),
    output:
        rows="results/rows/{scale}/{study}.parquet",
    params:
        cfg=lambda w: encoded(workflow_config.collect(w.study)),
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


rule report:
    message:
        "report"
    input:
        index=[f"results/tables/{study}/index.json" for study in workflow_config.studies],
        artefacts=[workflow_config.artefact_files(study) for study in workflow_config.studies],
        code=workflow_config.code("report"),
    output:
        html="results/report.html",
        summary="results/summary.txt",
    log:
        f"results/logs/{workflow_config.scale}/report.log",
    benchmark:
        f"results/benchmarks/{workflow_config.scale}/report/all.tsv"
    resources:
        **workflow_config.resources.asked("report"),
    params:
        scale=workflow_config.scale,
    shell:
        "python -m pipeline.stages.report --index {input.index} --figures results/figures"
        " --benchmarks results/benchmarks --scale {params.scale} --output {output.html} --summary {output.summary}"
        " > {log} 2>&1"
