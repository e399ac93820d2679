# raw files and their manifest -> prepared arrays


# Run on the submitting machine: the nodes of a cluster may have no network.
localrules:
    fetch,


rule fetch:
    message:
        "fetch {wildcards.dataset}"
    input:
        twin=lambda w: run.twin(w.dataset),
    output:
        manifest="data/raw/{dataset}/manifest.json",
    params:
        source=run.source,
        # One more if published files can now replace a substitute: the changed parameter fetches again.
        replaced=lambda w: run.replaced(w.dataset),
        code=lambda w: run.code("fetch", dataset=w.dataset),
    log:
        "results/logs/fetch/{dataset}.log",
    benchmark:
        "results/benchmarks/fetch/{dataset}.tsv"
    # Start downloads first: they take a long time and need no processor.
    priority: 1000000
    shell:
        "{python:q} -m pipeline.stages.fetch --dataset {wildcards.dataset} --source {params.source}"
        " --replaced {params.replaced} --raw data/raw/{wildcards.dataset} --output {output.manifest} > {log} 2>&1"


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
