"""In one process, over a network and by files a fit has the same bytes, for every response."""

from pathlib import Path
from typing import Any

import pytest
from helpers.deploy.carried import CARRIED, KEY
from helpers.deploy.doors import Project
from helpers.deploy.post import Post
from helpers.governance.authority import Authority
from helpers.nets import same_files

from fedlasso.deploy.run import begin_plan, run_plan
from fedlasso.models import FitPlan, NetworkSource


@pytest.mark.full
@pytest.mark.parametrize("name", CARRIED)
def test_three_ways_have_the_same_bytes_in_few_round_trips(name: str, tmp_path: Path) -> None:
    carried = CARRIED[name]
    tables = carried.write(tmp_path)
    post = Post(tmp_path / "post", tables)
    post.fix_secrets(KEY)
    fit = post.ask(carried.settings, drop=(), **carried.outcome)
    finished = post.finish(fit)
    print(f"{name}: {len(fit.trips())} round trips, at most {carried.trips}")
    assert len(fit.trips()) <= carried.trips
    by_files = post.folder / "model"
    alone = post.repeat(finished.document, tmp_path / "alone")
    assert same_files(by_files, alone)
    online = tmp_path / "online"
    outcome: dict[str, Any] = dict(carried.outcome)
    source = NetworkSource(str(tmp_path), "", **outcome)
    begin_plan(online, FitPlan(carried.settings, source))
    project = Project(tables, authority=Authority(tmp_path / "authority"))
    run_plan(online, project.connect)
    assert same_files(by_files, online)
