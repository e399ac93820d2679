# tidy rows -> a study's tables, figures and comparison with the published numbers: one rule for each study, by its name

for study in workflow_config.studies:

    rule:
        name:
            study
        message:
            f"tables and figures of {study}"
        input:
            rows=f"results/rows/{workflow_config.scale}/{study}.parquet",
            audits=workflow_config.audit_files(study),
            classifiers=workflow_config.model_files(study),
            maps=workflow_config.map_files(study),
            datasets=workflow_config.dataset_files(study),
            published=[f"data/published/{study}.csv", *workflow_config.present(f"data/published/claims/{study}.yaml")],
            code=workflow_config.code("artefacts", study=study),
            reference=workflow_config.reference_files(study),
        output:
            artefacts=workflow_config.marked(study),
            captions=workflow_config.captions(study),
            index=f"results/tables/{study}/index.json",
        params:
            study=study,
            cfg=encoded(workflow_config.artefacts(study)),
            against=f"--against data/reference/{study}" if study in workflow_config.referenced else "",
        log:
            f"results/logs/{workflow_config.scale}/{study}.log",
        benchmark:
            f"results/benchmarks/{workflow_config.scale}/{study}/all.tsv"
        # Half of the processors, so that it is drawn as soon as its rows are there, beside what is still computed.
        threads: max(1, min(4, (workflow.resource_settings.cores or 8) // 2))
        priority: 100000
        resources:
            **workflow_config.resources.asked("artefacts", study=study),
        group:
            f"tables_{study}"
        shell:
            # Through a pipe: one argument of a command may not be longer than 128 KB, which the sections of a study are.
            # The cores are for artefacts side by side; each sums on one, so that no digit depends on how many there are.
            "printf %s {params.cfg:q}"
            " | OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1"
            " python -m pipeline.stages.artefacts --study {params.study} --config -"
            " --rows {input.rows}"
            " --datasets {input.datasets:q} --audits {input.audits:q} --classifiers {input.classifiers:q}"
            " --transports {input.maps:q}"
            " --published {input.published} --tables results/tables/{params.study}"
            " --figures results/figures/{params.study} --captions results/captions/{params.study} {params.against} --index {output.index} --processes {threads} > {log} 2>&1"
