# prepared dataset -> classifiers, transport maps -> audit result


rule train:
    message:
        "train {wildcards.method} on {wildcards.dataset}"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
        code=lambda w: workflow_config.code("train", method=w.method),
    output:
        classifier="results/models/{scale}/{dataset}/{method}.npz",
    params:
        cfg=lambda w: encoded(workflow_config.train(w.dataset, w.method)),
    log:
        "results/logs/{scale}/train/{dataset}/{method}.log",
    benchmark:
        "results/benchmarks/{scale}/train/{dataset}/{method}.tsv"
    threads:
        lambda w: workflow_config.train(w.dataset, w.method)["method"].get("threads", 1)
    resources:
        **workflow_config.resources.asked("train"),
    group:
        workflow_config.resources.group("train")
    shell:
        "python -m pipeline.stages.train --config {params.cfg:q}"
        " --dataset {input.dataset:q} --output {output.classifier:q} > {log:q} 2>&1"


rule transport:
    message:
        "map {wildcards.dataset} by {wildcards.transport}"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
        code=lambda w: workflow_config.code("transport", transport=w.transport),
    output:
        maps="results/transports/{scale}/{dataset}/{transport}.npz",
    params:
        cfg=lambda w: encoded(workflow_config.transport(w.dataset, w.transport)),
    log:
        "results/logs/{scale}/transport/{dataset}/{transport}.log",
    benchmark:
        "results/benchmarks/{scale}/transport/{dataset}/{transport}.tsv"
    threads:
        lambda w: workflow_config.transport(w.dataset, w.transport)["transport"].get("threads", 1)
    resources:
        **workflow_config.resources.asked("transport"),
    # The longest jobs of a study are among the maps: before the audits, which are many and short, so that no core waits
    # at the end.
    priority: 1
    group:
        workflow_config.resources.group("transport")
    shell:
        "python -m pipeline.stages.transport --config {params.cfg:q}"
        " --dataset {input.dataset:q} --output {output.maps:q} > {log:q} 2>&1"


rule audit:
    message:
        "audit {wildcards.method} on {wildcards.dataset} ({wildcards.block}: {wildcards.audit})"
    input:
        dataset="data/prepared/{scale}/{dataset}.npz",
        classifier="results/models/{scale}/{dataset}/{method}.npz",
        maps=lambda w: workflow_config.maps_of(w.study, w.block, w.dataset, w.method, w.audit),
        code=lambda w: workflow_config.code("audit", audit=w.audit),
    output:
        result="results/audits/{scale}/{study}/{block}/{dataset}/{method}/{audit}.npz",
    params:
        cfg=lambda w: encoded(workflow_config.audit(w.study, w.block, w.dataset, w.method, w.audit)),
    log:
        "results/logs/{scale}/audit/{study}/{block}/{dataset}/{method}/{audit}.log",
    benchmark:
        "results/benchmarks/{scale}/audit/{study}/{block}/{dataset}/{method}/{audit}.tsv"
    threads:
        lambda w: workflow_config.audit(w.study, w.block, w.dataset, w.method, w.audit)["audit"].get("threads", 1)
    resources:
        **workflow_config.resources.asked("audit"),
    group:
        workflow_config.resources.group("audit")
    shell:
        "python -m pipeline.stages.audit --config {params.cfg:q} --dataset {input.dataset:q}"
        " --classifier {input.classifier:q} --transport {input.maps:q} --output {output.result:q} > {log:q} 2>&1"
