# audits -> tidy rows -> tables and figures -> report; tidy rows of a sweep -> summary and figure


rule collect:
    message:
        "collect {wildcards.study}"
    input:
        audits=lambda w: run.made(w.study),
    output:
        rows="results/rows/{scale}/{study}.parquet",
    params:
        config=lambda w: encoded(run.collect(w.study)),
        code=run.code("collect"),
    log:
        "results/logs/{scale}/collect/{study}.log",
    benchmark:
        "results/benchmarks/{scale}/collect/{study}.tsv"
    resources:
        **run.requests("collect"),
    priority: 100000
    shell:
        "{python:q} -m pipeline.stages.collect --study {wildcards.study} --scale {wildcards.scale} --audits {params.config:q}"
        " --output {output.rows} > {log} 2>&1"


# The number of processes that draw. It is not a parameter, because another number of cores must not rerun the job.
drawers = min(4, workflow.resource_settings.cores or 4)


# Each study has its own rule, because its tables and figures are its own. The index lists them for the report.
for study in run.declared:

    rule:
        name:
            f"draw_{study}"
        message:
            "tables and figures of {wildcards.study}"
        input:
            rows=f"results/rows/{run.scale}/{{study}}.parquet",
            datasets=lambda w: run.files("prepare", w.study),
            audits=lambda w: run.made(w.study),
            published=published,
            reference=lambda w: references.files(run, w.study),
        output:
            index="results/tables/{study}/index.json",
            artefacts=drawn(study),
            captions=[f"results/captions/{{study}}/{one.name}.rst" for one in registry.declared(study)],
        wildcard_constraints:
            study=study,
        params:
            inputs=lambda w: encoded(run.inputs(w.study)),
            code=lambda w: run.code("draw", study=w.study),
            fill=lambda w: references.fill_option(run, w.study),
            regression=lambda w: references.regression_option(run, w.study),
        log:
            f"results/logs/{run.scale}/draw/{{study}}.log",
        benchmark:
            f"results/benchmarks/{run.scale}/draw/{{study}}.tsv"
        # A study is drawn while others are still being computed, so drawing waits only for half of the cores that it uses.
        threads: max(1, min(4, (workflow.resource_settings.cores or 8) // 2))
        priority: 100000
        resources:
            **run.requests("draw"),
        shell:
            # Use a pipe, because an argument of a command is limited to 128 KB.
            "printf %s {params.inputs:q} | {one_thread} {python:q} -m pipeline.stages.draw --rows {input.rows}"
            " --published {input.published:q} {params.fill} {params.regression} --tables results/tables/{wildcards.study}"
            " --figures results/figures/{wildcards.study} --captions results/captions/{wildcards.study}"
            " --index {output.index} --processes {drawers} > {log} 2>&1"


# The part of the first study that takes no long job, within minutes of the start. It says what is still being computed.
rule first_page:
    message:
        "first page, results/pages/{wildcards.study}_first.html"
    input:
        datasets=lambda w: first.files("prepare", w.study),
        audits=lambda w: first.made(w.study),
        published=published,
    output:
        html="results/pages/{study}_first.html",
    params:
        rows=lambda w: encoded(first.collect(w.study)),
        inputs=lambda w: encoded(first.inputs(w.study)),
        code=lambda w: run.code("draw", study=w.study),
        folder="results/first/{study}",
        scale=run.scale,
    log:
        f"results/logs/{run.scale}/first_page/{{study}}.log",
    benchmark:
        f"results/benchmarks/{run.scale}/first_page/{{study}}.tsv"
    threads: max(1, min(4, (workflow.resource_settings.cores or 8) // 2))
    priority: 100000
    shell:
        "({python:q} -m pipeline.stages.collect --study {wildcards.study} --scale {params.scale} --audits {params.rows:q}"
        " --output {params.folder}/rows.parquet;"
        " printf %s {params.inputs:q} | {one_thread} {python:q} -m pipeline.stages.draw --rows {params.folder}/rows.parquet"
        " --published {input.published:q} --tables {params.folder} --figures {params.folder}/{wildcards.study}"
        " --captions {params.folder}/captions --index {params.folder}/index.json --processes {drawers};"
        " {python:q} -m pipeline.stages.report --index {params.folder}/index.json --figures {params.folder}"
        " --benchmarks results/benchmarks --scale {params.scale} --output {output.html}) > {log} 2>&1"


# A study's own page is there as soon as the study is drawn. The report has all studies.
rule page:
    message:
        "page of {wildcards.study}, results/pages/{wildcards.study}.html"
    input:
        index="results/tables/{study}/index.json",
        artefacts=lambda w: registry.files(w.study),
    output:
        html="results/pages/{study}.html",
    params:
        scale=run.scale,
        folder="results",
        code=run.code("report"),
    log:
        f"results/logs/{run.scale}/page/{{study}}.log",
    benchmark:
        f"results/benchmarks/{run.scale}/page/{{study}}.tsv"
    priority: 100000
    resources:
        **run.requests("report"),
    shell:
        "{python:q} -m pipeline.stages.report --index {input.index} --figures {params.folder}/figures"
        " --benchmarks {params.folder}/benchmarks --scale {params.scale} --output {output:q} > {log} 2>&1"


use rule page as report with:
    message:
        "report"
    input:
        index=expand("results/tables/{study}/index.json", study=run.studies),
        artefacts=[registry.files(study) for study in run.studies],
    output:
        html="results/report.html",
        summary="results/summary.txt",
    log:
        f"results/logs/{run.scale}/report.log",
    benchmark:
        f"results/benchmarks/{run.scale}/report/all.tsv"


rule sweep:
    message:
        "sweep {wildcards.sweep}"
    input:
        rows="results/rows/{scale}/{sweep}.parquet",
    output:
        summary="results/sweeps/{scale}/{sweep}/summary.csv",
        figure=multiext("results/sweeps/{scale}/{sweep}/figure", ".pdf", ".png"),
    params:
        config=lambda w: encoded(run.sweep(w.sweep)),
        code=run.code("sweep"),
        stem="results/sweeps/{scale}/{sweep}/figure",
    log:
        "results/logs/{scale}/sweep/{sweep}.log",
    benchmark:
        "results/benchmarks/{scale}/sweep/{sweep}.tsv"
    resources:
        **run.requests("sweep"),
    shell:
        "{python:q} -m pipeline.stages.sweep --config {params.config:q} --rows {input.rows} --summary {output.summary}"
        " --figure {params.stem} > {log} 2>&1"


# Everything in Snakemake's report.
rule artefacts:
    input:
        [registry.files(study) for study in run.studies],
