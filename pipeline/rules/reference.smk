# a finished run -> data/reference/<study>, and the tables, figures and page that are drawn from it, without data

for study in workflow_config.studies:

    rule:
        name:
            f"reference_{study}"
        message:
            f"reference of {study}"
        input:
            rows=f"results/rows/{workflow_config.scale}/{study}.parquet",
            audits=workflow_config.audit_files(study),
            classifiers=workflow_config.model_files(study),
            maps=workflow_config.map_files(study),
            datasets=workflow_config.dataset_files(study),
            published=[f"data/published/{study}.csv", *workflow_config.present(f"data/published/claims/{study}.yaml")],
        output:
            touch(f"results/reference/{workflow_config.scale}/{study}.recorded"),
        params:
            study=study,
            scale=workflow_config.scale,
            cfg=encoded(workflow_config.artefacts(study)),
            # Not an input: how long a job took is no reason to do anything again.
            benchmarks=lambda w, study=study: encoded(workflow_config.plan.benchmarks(study)),
        log:
            f"results/logs/{workflow_config.scale}/reference/{study}.log",
        shell:
            "printf %s {params.cfg:q} | python -m pipeline.stages.artefacts --study {params.study} --config -"
            " --rows {input.rows}"
            " --datasets {input.datasets:q} --audits {input.audits:q} --classifiers {input.classifiers:q}"
            " --transports {input.maps:q} --published {input.published}"
            " --record data/reference/{params.study} --benchmarks {params.benchmarks:q}"
            " --verdicts data/reference"
            " --tables results/reference/{params.scale}/{params.study} --figures results/reference/{params.scale}/{params.study}"
            " > {log} 2>&1"


for study in workflow_config.referenced:

    rule:
        name:
            f"figures_{study}"
        message:
            f"tables and figures of {study} from its reference"
        input:
            reference=workflow_config.reference_files(study),
            published=[f"data/published/{study}.csv", *workflow_config.present(f"data/published/claims/{study}.yaml")],
            code=workflow_config.code("artefacts", study=study),
        output:
            artefacts=workflow_config.artefact_files(study, "results/reference/"),
            index=f"results/reference/tables/{study}/index.json",
        params:
            study=study,
        log:
            f"results/logs/reference/{study}.log",
        threads: 2
        shell:
            "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1"
            " python -m pipeline.stages.artefacts --study {params.study} --drawn-from data/reference/{params.study}"
            " --published {input.published} --tables results/reference/tables/{params.study}"
            " --figures results/reference/figures/{params.study} --index {output.index} --processes {threads}"
            " > {log} 2>&1"


rule figures:
    message:
        "page of the references"
    input:
        index=[f"results/reference/tables/{study}/index.json" for study in workflow_config.referenced],
        artefacts=[workflow_config.artefact_files(study, "results/reference/") for study in workflow_config.referenced],
        code=workflow_config.code("report"),
    output:
        html="results/reference/report.html",
        summary="results/reference/summary.txt",
    log:
        "results/logs/reference/report.log",
    shell:
        "python -m pipeline.stages.report --index {input.index} --figures results/reference/figures"
        " --benchmarks results/reference/benchmarks --scale reference --output {output.html}"
        " --summary {output.summary} > {log} 2>&1"
