# tables, figures and comparison with the published numbers: of a study by its name, and of the references without data
#
#   tidy rows -> tables, figures                               rule <study>
#   a finished run -> data/reference/<study>                   rule reference_<study>
#     of a part of it: the rest stays as it is there
#   data/reference/<study> -> tables, figures                  rule figures_<study>
#   data/reference/<study> -> its verdicts and claims          rule verdicts_<study>

# What stands below shell: is read when a job starts, after the loops: of a study it knows params alone.
# The cores are for artefacts side by side; each sums on one, so that no digit depends on how many there are.
draw = (
    "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1"
    " python -m pipeline.stages.artefacts --study {params.study} --published {input.published}"
)
# Through a pipe: one argument of a command may not be longer than 128 KB, which the sections of a study are.
draw_run = (
    f"printf %s {{params.cfg:q}} | {draw} --config - --rows {{input.rows}} --datasets {{input.datasets:q}}"
    " --audits {input.audits:q} --classifiers {input.classifiers:q} {params.beside}"
)


def published(study):
    """The study's published numbers, and what the paper claims of them."""
    return [f"data/published/{study}.csv", *workflow_config.present(f"data/published/claims/{study}.yaml")]


for study in workflow_config.studies:

    rule:
        name:
            study
        message:
            f"tables and figures of {study}"
        input:
            **workflow_config.sources(study),
            published=published(study),
            reference=workflow_config.reference_files(study),
        output:
            artefacts=workflow_config.marked(study),
            captions=workflow_config.captions(study),
            index=f"results/tables/{study}/index.json",
        params:
            study=study,
            code=workflow_config.code("artefacts", study=study),
            cfg=encoded(workflow_config.artefacts(study)),
            beside=workflow_config.beside(study),
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
            draw_run + " --tables results/tables/{params.study} --figures results/figures/{params.study}"
            " --captions results/captions/{params.study} {params.against}"
            " --index {output.index} --processes {threads} > {log} 2>&1"

    rule:
        name:
            f"reference_{study}"
        message:
            f"reference of {study}"
        input:
            **workflow_config.sources(study),
            published=published(study),
        output:
            touch(f"results/reference/{workflow_config.scale}/{study}.recorded"),
        params:
            study=study,
            cfg=encoded(workflow_config.artefacts(study)),
            beside=workflow_config.beside(study),
            folder=f"results/reference/{workflow_config.scale}/{study}",
            # Not an input: how long a job took is no reason to do anything again.
            benchmarks=lambda w, study=study: encoded(workflow_config.plan.benchmarks(study)),
        log:
            f"results/logs/{workflow_config.scale}/reference/{study}.log",
        shell:
            draw_run + " --record data/reference/{params.study} --verdicts data/reference"
            " --benchmarks {params.benchmarks:q} --tables {params.folder} --figures {params.folder} > {log} 2>&1"


for study in workflow_config.referenced:

    rule:
        name:
            f"figures_{study}"
        message:
            f"tables and figures of {study} from its reference"
        input:
            reference=workflow_config.reference_files(study),
            published=published(study),
        output:
            artefacts=workflow_config.artefact_files(study, "results/reference/"),
            index=f"results/reference/tables/{study}/index.json",
        params:
            study=study,
            code=workflow_config.code("artefacts", study=study),
        log:
            f"results/logs/reference/{study}.log",
        threads: 2
        shell:
            draw + " --drawn-from data/reference/{params.study} --tables results/reference/tables/{params.study}"
            " --figures results/reference/figures/{params.study}"
            " --index {output.index} --processes {threads} > {log} 2>&1"

    rule:
        name:
            f"verdicts_{study}"
        message:
            f"verdicts and claims of {study} from its reference"
        input:
            reference=workflow_config.reference_files(study),
            published=published(study),
        params:
            study=study,
        log:
            f"results/logs/reference/{study}_verdicts.log",
        shell:
            draw + " --drawn-from data/reference/{params.study} --verdicts data/reference"
            " --tables results/reference --figures results/reference > {log} 2>&1"
