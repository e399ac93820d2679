# raw files and their manifest -> prepared arrays


# Run on the submitting machine: the nodes of a cluster may have no network.
localrules:
    fetch,


def twin(wildcards):
    """Return the files of a data set's twin. Fetch again if published files can replace a substitute."""
    if workflow.is_main_process and run.superseded(wildcards.dataset):
        workflow.dag.forcefiles.add(f"data/raw/{wildcards.dataset}/manifest.json")
    return run.twin(wildcards.dataset)


rule fetch:
    message:
        "fetch {wildcards.dataset}"
    input:
        twin=twin,
    output:
        manifest="data/raw/{dataset}/manifest.json",
    params:
        source=run.source,
        code=lambda w: run.code("fetch", dataset=w.dataset),
    log:
        "results/logs/fetch/{dataset}.log",
    benchmark:
        "results/benchmarks/fetch/{dataset}.tsv"
    # Start downloads first: they take a long time and need no processor.
    priority: 1000000
    shell:
        "{python:q} -m pipeline.stages.fetch --dataset {wildcards.dataset} --source {params.source}"
        " --raw data/raw/{wildcards.dataset} --output {output.manifest} > {log} 2>&1"


rule prepare:
    message:
        "prepare {wildcards.dataset}"
    input:
        manifest=lambda w: run.job("prepare", w).inputs,
    output:
        dataset="data/prepared/{scale}/{dataset}.npz",
    params:
        tasks=lambda w: run.job("prepare", w).told,
    log:
        "results/logs/{scale}/prepare/{dataset}.log",
    threads: lambda w: run.job("prepare", w).threads
    resources:
        **run.requests("prepare"),
    priority: lambda w: run.job("prepare", w).priority
    shell:
        perform
