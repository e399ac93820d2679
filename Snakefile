# Every table and figure of every study, from raw data: `snakemake --cores N`.
#   SCALE=smoke|laptop|workstation|extended|paper|gpu   STUDY=individual_fairness   DATASETS="adult compas"   FINISHED=yes   TRACKER=offline|online|disabled
#
#   fetch -> prepare -> train -> audit -> collect -> draw -> page, report
#               └-> transport -┘             ├-> sweep
#                                            └-> reference -> draw_reference -> figures
#
# Each job makes one file. Its parameters and cluster resources come from the plan (pipeline/workflow/plan.py).
from snakemake.utils import min_version

from pipeline.workflow.config import Workflow, encoded

min_version("9.0")

# Jobs run with the interpreter that runs Snakemake, whatever `python` is on PATH.
python = sys.executable

run = Workflow.of(config, os.environ)
run.isolate(os.environ)
if workflow.is_main_process:
    run.check(workflow.resource_settings.cores, os.environ)
if workflow.is_main_process and not workflow.output_settings.dryrun:
    run.announce()
if workflow.is_main_process:
    run.find_absent(os.environ)
run.export_tracker(os.environ, sys.argv[1:])

# Drawing uses its cores for several artefacts at a time. Each artefact uses one thread: sums do not depend on the number of cores.
one_thread = "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1"


wildcard_constraints:
    scale=run.scale,
    study=r"\w+",
    block=r"\w+",
    dataset="[^/]+",
    method="[^/]+",
    transport="[^/]+",
    audit="[^/]+",
    sweep=r"\w+",


include: "pipeline/rules/data.smk"
include: "pipeline/rules/models.smk"
include: "pipeline/rules/artefacts.smk"
include: "pipeline/rules/study.smk"
include: "pipeline/rules/reference.smk"


rule all:
    default_target: True
    input:
        "results/report.html",
        "results/summary.txt",
        expand("results/pages/{study}.html", study=run.studies if len(run.studies) > 1 else []),


onstart:
    if workflow.local_exec:
        # With a rate limit, Snakemake examines all waiting jobs after each job that ends (docs/snakemake_scheduler.md).
        workflow.scheduler.job_rate_limiter = None
    run.warm_up(workflow)


onsuccess:
    run.forget_failures()


onerror:
    logger.error(run.account_for(workflow.dag, workflow.scheduler.failed))
