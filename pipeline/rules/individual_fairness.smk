# Maity, Xue, Yurochkin and Sun, ICLR 2021: tidy rows -> tables, figures, comparison with the published numbers


rule individual_fairness:
    message:
        "tables and figures of individual_fairness"
    input:
        rows=f"results/rows/{workflow_config.scale}/individual_fairness.parquet",
        audits=workflow_config.audit_files("individual_fairness"),
        classifiers=workflow_config.model_files("individual_fairness"),
        datasets=workflow_config.dataset_files("individual_fairness"),
        published="data/published/individual_fairness.csv",
        code=workflow_config.code("artefacts", study="individual_fairness"),
        captions=workflow_config.captions("individual_fairness"),
    output:
        tables=workflow_config.tables("individual_fairness"),
        figures=workflow_config.figures("individual_fairness"),
        index="results/tables/individual_fairness/index.json",
    params:
        cfg=encoded(workflow_config.artefacts("individual_fairness")),
    log:
        f"results/logs/{workflow_config.scale}/individual_fairness.log",
    benchmark:
        f"results/benchmarks/{workflow_config.scale}/individual_fairness/all.tsv"
    shell:
        "python -m pipeline.stages.artefacts --study individual_fairness --config {params.cfg:q} --rows {input.rows}"
        " --datasets {input.datasets:q} --audits {input.audits:q} --classifiers {input.classifiers:q}"
        " --published {input.published} --tables results/tables/individual_fairness"
        " --figures results/figures/individual_fairness --index {output.index} > {log} 2>&1"
