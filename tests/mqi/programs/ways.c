/* Puts and gets on the queue DEV.QUEUE.1, and ends in the way that its argument names. */
#include <cmqc.h>
#include <cmqstrc.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static MQHCONN hconn;
static MQHOBJ hobj;
static MQLONG cc, rc;

static void say(const char *verb) { printf("%s %d %s\n", verb, cc, MQRC_STR(rc)); }

static int opened(MQHCONN with) {
    MQOD od = {MQOD_DEFAULT};
    strcpy(od.ObjectName, "DEV.QUEUE.1");
    MQOPEN(with, &od, MQOO_OUTPUT | MQOO_INPUT_SHARED, &hobj, &cc, &rc);
    return hobj;
}

static void put(MQLONG options, const char *text) {
    MQMD md = {MQMD_DEFAULT};
    MQPMO pmo = {MQPMO_DEFAULT};
    pmo.Options = options;
    MQPUT(hconn, hobj, &md, &pmo, (MQLONG)strlen(text), (PMQVOID)text, &cc, &rc);
}

static MQLONG get(MQHCONN with, MQHOBJ from, char *buffer, MQLONG size, MQLONG wait) {
    MQMD md = {MQMD_DEFAULT};
    MQGMO gmo = {MQGMO_DEFAULT};
    MQLONG length = 0, completion, reason;
    gmo.Options = MQGMO_NO_SYNCPOINT | MQGMO_WAIT;
    gmo.WaitInterval = wait;
    MQGET(with, from, &md, &gmo, size, buffer, &length, &completion, &reason);
    cc = completion, rc = reason;
    return length;
}

static void *wait_for_ever(void *ignored) {
    char buffer[100];
    MQHCONN own;
    MQLONG completion, reason;
    MQOD od = {MQOD_DEFAULT};
    MQHOBJ from;
    strcpy(od.ObjectName, "DEV.QUEUE.2");
    MQCONN("QM1", &own, &completion, &reason);
    MQOPEN(own, &od, MQOO_INPUT_SHARED, &from, &completion, &reason);
    get(own, from, buffer, sizeof buffer, MQWI_UNLIMITED);
    return ignored;
}

static void *put_many(void *ignored) {
    MQHCONN own;
    MQHOBJ to;
    MQLONG completion, reason;
    MQOD od = {MQOD_DEFAULT};
    strcpy(od.ObjectName, "DEV.QUEUE.1");
    MQCONN("QM1", &own, &completion, &reason);
    MQOPEN(own, &od, MQOO_OUTPUT, &to, &completion, &reason);
    for (int i = 0; i < 25; i++) {
        MQMD md = {MQMD_DEFAULT};
        MQPMO pmo = {MQPMO_DEFAULT};
        pmo.Options = MQPMO_SYNCPOINT;
        MQPUT(own, to, &md, &pmo, 1, "x", &completion, &reason);
    }
    MQDISC(&own, &completion, &reason);
    return ignored;
}

static void connect_and_open(void) {
    MQCONN("QM1", &hconn, &cc, &rc);
    say("MQCONN");
    if (cc == MQCC_FAILED)
        exit(3);
    opened(hconn);
}

int main(int count, char **given) {
    const char *way = count > 1 ? given[1] : "";
    char buffer[20];
    pthread_t threads[4];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(way, "process")) {
        struct sigaction before, after;
        sigaction(SIGINT, NULL, &before);
        connect_and_open();
        sigaction(SIGINT, NULL, &after);
        printf("SIGINT %s, locale %s\n", before.sa_handler == after.sa_handler ? "kept" : "changed",
               setlocale(LC_CTYPE, NULL));
        return 0;
    }
    connect_and_open();
    if (!strcmp(way, "plain")) {
        put(MQPMO_NO_SYNCPOINT, "hello");
        say("MQPUT");
        MQLONG length = get(hconn, hobj, buffer, sizeof buffer, 0);
        say("MQGET");
        printf("%d %.*s\n", length, length, buffer);
        get(hconn, hobj, buffer, sizeof buffer, 0);
        say("MQGET");
        MQCLOSE(hconn, &hobj, MQCO_NONE, &cc, &rc);
        say("MQCLOSE");
        put(MQPMO_NO_SYNCPOINT, "hello");
        say("MQPUT");
        MQDISC(&hconn, &cc, &rc);
        say("MQDISC");
        printf("%d\n", hconn);
    } else if (!strcmp(way, "threads")) {
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, put_many, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    } else if (!strcmp(way, "fork")) {
        put(MQPMO_SYNCPOINT, "of the parent");
        if (!fork()) {
            put(MQPMO_SYNCPOINT, "of the child");
            say("MQPUT");
            MQCONN("QM1", &hconn, &cc, &rc);
            say("MQCONN");
            opened(hconn);
            put(MQPMO_NO_SYNCPOINT, "of the child");
            say("MQPUT");
            exit(0);
        }
        wait(NULL);
        MQCMIT(hconn, &cc, &rc);
        say("MQCMIT");
    } else if (!strcmp(way, "wait")) {
        get(hconn, hobj, buffer, sizeof buffer, MQWI_UNLIMITED);
    } else {
        pthread_create(&threads[0], NULL, wait_for_ever, NULL);
        put(MQPMO_SYNCPOINT, "uncommitted");
        say("MQPUT");
        if (!strcmp(way, "abort"))
            abort();
    }
    return 0;
}
