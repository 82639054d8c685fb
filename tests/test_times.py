"""The table of where the tests spend their time."""

from benchmarks.tests import run

REPORT = """<testsuites><testsuite name="pytest">
<testcase classname="tests.kernels.test_gram" name="test_a" time="3.0"/>
<testcase classname="tests.kernels.test_gram.TestWide" name="test_b" time="1.0"/>
<testcase classname="tests.test_catalogue" name="test_c" time="0.99"/>
<testcase classname="tests.docs.test_links" name="test_d" time="0.01"/>
<testcase classname="src.steepest.record" name="steepest.record.said" time="0.0"/>
</testsuite></testsuites>"""


def test_seconds_are_summed_by_folder(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT, "utf-8")
    folders = run.by_folder(report)
    assert list(folders) == ["tests/kernels", "tests", "tests/docs", "doctests"]
    assert folders["tests/kernels"] == run.Spent(2, 4.0)

    rows = run.table("every commit", folders)["rows"]
    assert rows == [
        ["tests/kernels", 2, "4", "80%"],
        ["tests", 1, "1", "20%"],
        ["others", 2, "0", "0%"],
        ["all", 5, "5", "100%"],
    ]
