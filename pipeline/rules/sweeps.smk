# audits of a sweep -> summary and figure: `snakemake sweep_<name>`, one rule for each file of conf/sweep/

for sweep in workflow_config.sweeps:

    rule:
        name:
            f"sweep_{sweep}"
        message:
            f"sweep {sweep}"
        input:
            rows=f"results/rows/{workflow_config.scale}/{sweep}.parquet",
        output:
            summary=f"results/sweeps/{workflow_config.scale}/{sweep}/summary.csv",
            figure=multiext(f"results/sweeps/{workflow_config.scale}/{sweep}/figure", ".pdf", ".png"),
        params:
            cfg=lambda w, sweep=sweep: encoded(workflow_config.sweep(sweep)),
            code=workflow_config.code("sweep"),
            stem=f"results/sweeps/{workflow_config.scale}/{sweep}/figure",
        log:
            f"results/logs/{workflow_config.scale}/sweep/{sweep}.log",
        benchmark:
            f"results/benchmarks/{workflow_config.scale}/sweep/{sweep}.tsv"
        resources:
            **workflow_config.resources.asked("sweep", study=sweep),
        group:
            f"tables_{sweep}"
        shell:
            "python -m pipeline.stages.sweep --config {params.cfg:q} --rows {input.rows} --summary {output.summary}"
            " --figure {params.stem} > {log} 2>&1"
