# raw files of a dataset, and a manifest of where they came from


# On a cluster, where the workflow itself runs: nodes may have no network.
localrules:
    fetch,


def twin(wildcards):
    """Return the files of a dataset's twin. Plan to fetch again what published files have superseded."""
    if workflow.is_main_process and workflow_config.superseded(wildcards.dataset):
        workflow.dag.forcefiles.add(f"data/raw/{wildcards.dataset}/manifest.json")
    return workflow_config.twin(wildcards.dataset)


rule fetch:
    message:
        "fetch {wildcards.dataset}"
    input:
        twin=twin,
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
