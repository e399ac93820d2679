# What is computed: one rule for each job of these stages, each a program in pipeline/stages/.
#
#   prepare     raw files -> prepared dataset                                  data/prepared/<scale>/<dataset>.npz
#   train       prepared dataset -> a method's classifiers                     results/models/<scale>/<dataset>/<method>.npz
#   transport   prepared dataset -> transport maps                             results/transports/<scale>/<dataset>/<map>.npz
#   audit       dataset, classifiers[, maps] -> audit result                   results/audits/<scale>/<study>/<block>/...npz
#
# A job makes one of these files, or several that conf/resources.yaml puts together; pipeline/workflow/batch.py then runs the stage
# for one after the other.

for job in workflow_config.plan.jobs:

    rule:
        name:
            job.rule
        message:
            job.title
        input:
            workflow_config.plan.inputs(job),
        output:
            workflow_config.plan.outputs(job),
        params:
            stage=job.stage,
            code=lambda w, job=job: workflow_config.plan.code(job),
            arguments=lambda w, job=job: encoded(workflow_config.plan.arguments(job)),
        log:
            f"results/logs/{workflow_config.scale}/{job.stage}/{job.name}.log",
        benchmark:
            workflow_config.plan.benchmark(job)
        threads: lambda w, job=job: workflow_config.plan.threads(job)
        resources:
            **workflow_config.plan.asked(job),
        # The longest comes first, so that no core waits at the end.
        priority: workflow_config.plan.priority(job)
        shell:
            # Through a pipe: one argument of a command may not be longer than 128 KB.
            "printf %s {params.arguments:q} | python -m pipeline.workflow.batch {params.stage} --code {params.code} > {log} 2>&1"


# Audits of data that cannot be had: each says so, with how to get them.
for study in workflow_config.plan.studies:
    if workflow_config.plan.not_run(study):

        rule:
            name:
                f"not_run_{study}"
            message:
                f"what {study} has no data for"
            input:
                manifests=sorted({entry["manifest"] for entry in workflow_config.plan.not_run(study)}),
            output:
                [entry["output"] for entry in workflow_config.plan.not_run(study)],
            params:
                audits=encoded(workflow_config.plan.not_run(study)),
                code=workflow_config.code("absent"),
            log:
                f"results/logs/{workflow_config.scale}/not_run/{study}.log",
            benchmark:
                f"results/benchmarks/{workflow_config.scale}/not_run/{study}.tsv"
            localrule: True
            shell:
                "printf %s {params.audits:q} | python -m pipeline.stages.absent --audits - > {log} 2>&1"
