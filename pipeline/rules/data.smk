# raw files of a dataset, and a manifest of where they came from


# On a cluster, where the workflow itself runs: nodes may have no network.
localrules:
    fetch,


rule fetch:
    message:
        "fetch {wildcards.dataset}"
    input:
        twin=lambda w: workflow_config.twin(w.dataset),
    output:
        manifest="data/raw/{dataset}/manifest.json",
    params:
        source=workflow_config.source,
        code=lambda w: workflow_config.code("fetch", dataset=w.dataset),
    log:
        "results/logs/fetch/{dataset}.log",
    benchmark:
        "results/benchmarks/fetch/{dataset}.tsv"
    # A download takes long and no processor.
    priority: 1000000
    shell:
        "python -m pipeline.stages.fetch --dataset {wildcards.dataset} --source {params.source}"
        " --raw data/raw/{wildcards.dataset} --output {output.manifest} > {log} 2>&1"
