# Every table and figure of every study, from raw data: `snakemake --cores N`.
#   SCALE=smoke|laptop|workstation|extended|paper|gpu   STUDY=individual_fairness   DATASETS="adult compas"   FINISHED=yes   TRACKER=offline|online|disabled
#
#   fetch -> prepare -> train -> audit -> collect -> draw -> page, report
#               └-> transport -┘             ├-> sweep
#                                            └-> record -> reference -> draw_reference -> figures
#
# The inputs, parameters and resources of a job come from the table of jobs (pipeline/jobs.py). Its tasks make one file each.
import gc

from snakemake.utils import min_version

from pipeline.jobs import Run, encoded
from pipeline.report import registry
from pipeline.workflow import invocation, lock, references

min_version("9.0")

# Jobs run with the interpreter that runs Snakemake, whatever `python` is on PATH.
python = sys.executable

# What is imported stays. Searching it for garbage again and again would take a third of the time of planning.
gc.freeze()

logger.addFilter(
    invocation.explained(lambda: [*run.owners, *invocation.targets(workflow.rules, run.scale, run.declared, run.sweeps)])
)
run = Run.of(config, os.environ, Path.cwd())
invocation.isolate(os.environ, run.root)
if workflow.is_main_process:
    run.find_absent(os.environ)
    run.check(workflow.resource_settings.cores, os.environ)
first = run.only_first()
run.export_tracker(os.environ, sys.argv[1:])

# Drawing uses its cores for several artefacts at a time. Each artefact uses one thread: sums do not depend on the number of cores.
one_thread = "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1"

# The jobs from `prepare` to `audit` run their tasks in one process.
perform = "printf %s {params.tasks:q} | {python:q} -m pipeline.workflow.launch {output:q} > {log} 2>&1"


wildcard_constraints:
    scale=run.scale,
    study="|".join(run.planned),
    dataset="[^/]+",
    method="[^/]+",
    transport="[^/]+",
    part="[^/]+",
    sweep="|".join(run.sweeps),


include: "pipeline/rules/data.smk"
include: "pipeline/rules/models.smk"
include: "pipeline/rules/artefacts.smk"
include: "pipeline/rules/study.smk"
include: "pipeline/rules/reference.smk"


# Snakemake makes a deleted file again if a target needs it, and not if only other jobs need it. So targets name all files.
rule all:
    default_target: True
    input:
        [registry.files(study) for study in run.studies],
        expand("results/pages/{study}_first.html", study=run.first_page),
        "results/report.html",
        "results/summary.txt",
        expand("results/pages/{study}.html", study=run.studies if len(run.studies) > 1 else []),


onstart:
    lock.take(Path.cwd())
    if workflow.dag_settings.forceall or workflow.dag_settings.forcetargets or workflow.dag_settings.forcerun:
        # Jobs run again what is forced, although the files exist.
        os.environ["PIPELINE_FRESH"] = "yes"


onsuccess:
    summary = Path("results/summary.txt")
    if summary.is_file() and summary.stat().st_mtime > lock.RECORD.stat().st_mtime:
        logger.info(summary.read_text(encoding="utf-8").rstrip())


onerror:
    logger.error("Add FINISHED=yes to the command to build the report from the complete parts.")
