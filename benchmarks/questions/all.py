"""The questions, in the order in which they are asked."""

from __future__ import annotations

from benchmarks.questions import (
    behind_idle,
    channel,
    connect,
    depth,
    eight_processes,
    elsewhere,
    empty_tasks,
    get_commit,
    get_group,
    get_many_in_unit,
    get_many_outside,
    get_one,
    get_put,
    incomplete_groups,
    large_unit,
    long_group,
    long_stream,
    memory,
    mqi,
    on_postgresql,
    over_http,
    own_unit,
    put_many,
    put_one,
    request_reply,
    strict,
    tasks,
    wake_up,
    work,
)

QUESTIONS = {
    module.QUESTION.name: module.QUESTION
    for module in (
        put_one,
        put_many,
        get_one,
        get_commit,
        get_many_in_unit,
        get_many_outside,
        get_put,
        get_group,
        eight_processes,
        depth,
        incomplete_groups,
        long_group,
        own_unit,
        strict,
        memory,
        wake_up,
        request_reply,
        large_unit,
        channel,
        work,
        empty_tasks,
        connect,
        long_stream,
    )
} | {
    question.name: question
    for question in (
        *tasks.QUESTIONS,
        *mqi.QUESTIONS,
        *over_http.QUESTIONS,
        *elsewhere.QUESTIONS,
        *on_postgresql.QUESTIONS,
        channel.BETWEEN_SCHEMAS,
        behind_idle.QUESTION,
    )
}
BESIDE_THE_LIMIT = ("put_one", "put_many", "get_one", "get_many_outside", "get_commit", "get_many_in_unit")
