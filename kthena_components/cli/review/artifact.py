"""Write a file that another job of the pipeline has kept, in GitLab, to standard output.

  GITLAB_TOKEN=… python -I -m kthena_components.cli.review.artifact PIPELINE JOB FILE

In GitLab, a job that needs another one gets all artifacts of it, also variables (`dotenv`) that
replace the job's variables, such as PATH. Code of a branch may have uploaded them. So the job with
the token takes no artifacts, and requests this file alone. It imports only the standard library.

The exit status is 0 if the file is written, 1 if the host does not give it, and 2 for wrong
arguments or variables. One sentence says why.

Source: docs.gitlab.com, Job artifacts API, Jobs API; gitlabhq app/models/ci/build_dependencies.rb,
app/services/ci/job_artifacts/create_service.rb.
"""

import sys
import urllib.parse

from kthena_components.cli.review.hosts import HostError, ask_all, gitlab_project, load

MOST_BYTES = 16 * 2**20
"""More than the program that posts the comment reads: 4 Mi characters of at most four bytes."""
USAGE = "usage: artifact PIPELINE JOB FILE"


def artifact(pipeline: int, job: str, file: str) -> bytes:
    """Return the beginning of a file that the last run of a job of a pipeline has kept.

    Raises:
        HostError: There is no such job, or it has kept no such file.
    """
    header, _, project = gitlab_project()
    jobs = ask_all(header, f"{project}/pipelines/{pipeline}/jobs", "jobs")
    found = [int(each["id"]) for each in jobs if each.get("name") == job]
    if not found:
        raise HostError(f"pipeline {pipeline} has no job {job}")
    path = urllib.parse.quote(file)
    url = f"{project}/jobs/{max(found)}/artifacts/{path}"
    return load(header, "GET", url, most=MOST_BYTES + 1)


def main(arguments: list[str]) -> int:
    """Write one file."""
    try:
        pipeline, job, file = arguments
        content = artifact(int(pipeline), job, file)
    except HostError as error:
        sys.stderr.write(f"{file} of the job {job} is not read: {error}\n")
        return 1
    except (KeyError, ValueError) as error:
        sys.stderr.write(f"{USAGE}, with the variables of GitLab's pipeline: {error!r}\n")
        return 2
    sys.stdout.buffer.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
