# Every table and figure of every study, from raw data: `snakemake --cores N`.
#   SCALE=smoke|laptop|workstation|paper   STUDY=individual_fairness   DATASETS="adult compas"   FINISHED=yes   TRACKER=offline|online|disabled
from snakemake.utils import min_version

from pipeline.workflow.config import Workflow, encoded

min_version("9.0")

workflow_config = Workflow.of(config, os.environ)
if workflow.is_main_process and not workflow.output_settings.dryrun:
    workflow_config.announce()
if workflow.is_main_process:
    workflow_config.decide_absent(os.environ)
workflow_config.export_tracker(os.environ, workflow_config.sweeps_among(sys.argv[1:]))


wildcard_constraints:
    scale=workflow_config.scale,
    study=r"\w+",
    dataset="[^/]+",


include: "pipeline/rules/data.smk"
include: "pipeline/rules/models.smk"
include: "pipeline/rules/artefacts.smk"
include: "pipeline/rules/report.smk"
include: "pipeline/rules/sweeps.smk"


rule all:
    default_target: True
    input:
        "results/report.html",
        "results/summary.txt",
        [workflow_config.artefact_files(study) for study in workflow_config.studies],


onsuccess:
    workflow_config.forget_failures()


onerror:
    logger.error(workflow_config.account_for(workflow.dag, workflow.scheduler.failed))
