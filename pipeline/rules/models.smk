# prepared arrays -> trained classifiers, transport maps -> audits
#
# The rules `train` and `transport` make what several jobs of audits read, and what takes long. A job of audits makes the
# other classifiers and maps itself.


rule train:
    message:
        "train {wildcards.method} on {wildcards.dataset}"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
    output:
        classifiers="results/models/{scale}/{dataset}/{method}.npz",
    params:
        tasks=lambda w: run.job("train", w).told,
    log:
        "results/logs/{scale}/train/{dataset}.{method}.log",
    threads: lambda w: run.job("train", w).threads
    resources:
        **run.requests("train"),
    # Studies come one after another; the longest job of a study starts first.
    priority: lambda w: run.job("train", w).priority
    shell:
        perform


rule transport:
    message:
        "map {wildcards.dataset} by {wildcards.transport}"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
    output:
        maps="results/transports/{scale}/{dataset}/{transport}.npz",
    params:
        tasks=lambda w: run.job("transport", w).told,
    log:
        "results/logs/{scale}/transport/{dataset}.{transport}.log",
    threads: lambda w: run.job("transport", w).threads
    resources:
        **run.requests("transport"),
    priority: lambda w: run.job("transport", w).priority
    shell:
        perform


# Snakemake knows the record of the job only, because it deletes the outputs of a job that fails.
rule audit:
    message:
        "audit {wildcards.part} on {wildcards.dataset} ({wildcards.study})"
    input:
        lambda w: run.job("audit", w).inputs,
    output:
        record="results/jobs/{scale}/{study}/{dataset}/{part}.json",
    params:
        tasks=lambda w: run.job("audit", w).told,
        # A changed parameter runs the job again if one of its files was deleted.
        repaired=run.repaired,
    log:
        "results/logs/{scale}/audit/{study}.{dataset}.{part}.log",
    threads: lambda w: run.job("audit", w).threads
    resources:
        **run.requests("audit"),
    priority: lambda w: run.job("audit", w).priority
    shell:
        "printf %s {params.tasks:q} | {python:q} -m pipeline.workflow.launch {output:q} {params.repaired} > {log} 2>&1"
