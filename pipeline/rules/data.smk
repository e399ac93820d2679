# raw files -> prepared dataset


# On a cluster, where the workflow itself runs: nodes may have no network.
localrules:
    fetch,


rule fetch:
    message:
        "fetch {wildcards.dataset}"
    input:
        twin=lambda w: workflow_config.twin(w.dataset),
        code=lambda w: workflow_config.code("fetch", dataset=w.dataset),
    output:
        manifest="data/raw/{dataset}/manifest.json",
    params:
        source=workflow_config.source,
    log:
        "results/logs/fetch/{dataset}.log",
    benchmark:
        "results/benchmarks/fetch/{dataset}.tsv"
    shell:
        "python -m pipeline.stages.fetch --dataset {wildcards.dataset} --source {params.source}"
        " --raw data/raw/{wildcards.dataset} --output {output.manifest} > {log} 2>&1"


rule prepare:
    message:
        "prepare {wildcards.dataset}"
    input:
        manifest=lambda w: f"data/raw/{workflow_config.kind('dataset', w.dataset)}/manifest.json",
        code=lambda w: workflow_config.code("prepare", dataset=w.dataset),
    output:
        dataset="data/prepared/{scale}/{dataset}.npz",
    params:
        cfg=lambda w: encoded(workflow_config.prepare(w.dataset)),
    log:
        "results/logs/{scale}/prepare/{dataset}.log",
    benchmark:
        "results/benchmarks/{scale}/prepare/{dataset}.tsv"
    resources:
        **workflow_config.resources.asked("prepare"),
    shell:
        "python -m pipeline.stages.prepare --config {params.cfg:q}"
        " --manifest {input.manifest} --output {output.dataset:q} > {log:q} 2>&1"
