# prepared arrays -> trained classifiers, transport maps -> audits


rule train:
    message:
        "train {wildcards.method} on {wildcards.dataset}"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
    output:
        classifiers="results/models/{scale}/{dataset}/{method}.npz",
    params:
        config=lambda w: run.job("train", w).config,
        code=lambda w: run.job("train", w).code,
        benchmark="results/benchmarks/{scale}/train/{dataset}.{method}.tsv",
    log:
        "results/logs/{scale}/train/{dataset}.{method}.log",
    threads: lambda w: run.job("train", w).threads
    resources:
        **run.requests("train"),
    # Studies come one after another; the longest job of a study starts first.
    priority: lambda w: run.job("train", w).priority
    shell:
        "{python:q} -m pipeline.workflow.launch {params.benchmark} train --config {params.config:q}"
        " --dataset {input.dataset} --output {output.classifiers} > {log} 2>&1"


rule transport:
    message:
        "map {wildcards.dataset} by {wildcards.transport}"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
    output:
        maps="results/transports/{scale}/{dataset}/{transport}.npz",
    params:
        config=lambda w: run.job("transport", w).config,
        code=lambda w: run.job("transport", w).code,
        benchmark="results/benchmarks/{scale}/transport/{dataset}.{transport}.tsv",
    log:
        "results/logs/{scale}/transport/{dataset}.{transport}.log",
    threads: lambda w: run.job("transport", w).threads
    resources:
        **run.requests("transport"),
    priority: lambda w: run.job("transport", w).priority
    shell:
        "{python:q} -m pipeline.workflow.launch {params.benchmark} transport --config {params.config:q}"
        " --dataset {input.dataset} --output {output.maps} > {log} 2>&1"


rule audit:
    message:
        "audit {wildcards.method} on {wildcards.dataset} ({wildcards.block}: {wildcards.audit})"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
        classifiers="results/models/{scale}/{dataset}/{method}.npz",
        maps=lambda w: run.job("audit", w).inputs["transport"],
    output:
        result="results/audits/{scale}/{study}/{block}/{dataset}/{method}/{audit}.npz",
    wildcard_constraints:
        dataset=f"(?!{run.unavailable}/)[^/]+",
    params:
        config=lambda w: run.job("audit", w).config,
        code=lambda w: run.job("audit", w).code,
        benchmark="results/benchmarks/{scale}/audit/{study}.{block}.{dataset}.{method}.{audit}.tsv",
    log:
        "results/logs/{scale}/audit/{study}.{block}.{dataset}.{method}.{audit}.log",
    threads: lambda w: run.job("audit", w).threads
    resources:
        **run.requests("audit"),
    priority: lambda w: run.job("audit", w).priority
    shell:
        "{python:q} -m pipeline.workflow.launch {params.benchmark} audit --config {params.config:q} --dataset {input.dataset}"
        " --classifier {input.classifiers} --transport {input.maps} --output {output.result} > {log} 2>&1"


# The result of an audit without data: the reason, and how to get the data.
rule not_run:
    message:
        "no data for {wildcards.method} on {wildcards.dataset} ({wildcards.block}: {wildcards.audit})"
    input:
        manifest=lambda w: run.manifest(w.dataset),
    output:
        result="results/audits/{scale}/{study}/{block}/{dataset}/{method}/{audit}.npz",
    wildcard_constraints:
        dataset=run.unavailable,
    params:
        point=lambda w: encoded(run.not_run(w)),
        code=run.code("absent"),
        benchmark="results/benchmarks/{scale}/not_run/{study}.{block}.{dataset}.{method}.{audit}.tsv",
    log:
        "results/logs/{scale}/not_run/{study}.{block}.{dataset}.{method}.{audit}.log",
    localrule: True
    shell:
        "{python:q} -m pipeline.workflow.launch {params.benchmark} absent --manifest {input.manifest} --point {params.point:q}"
        " --output {output.result} > {log} 2>&1"
