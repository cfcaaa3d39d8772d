/* Puts a group of two messages, reads it in logical order, and prints where it ends. */
#include <cmqc.h>
#include <cmqcfc.h>
#include <cmqxc.h>
#include <stdio.h>
#include <string.h>

static MQLONG completion, reason;

static void ended(const char *verb) {
    if (completion != MQCC_OK)
        printf("%s %d %d\n", verb, completion, reason);
}

int main(int count, char **arguments) {
    MQOD od = {MQOD_DEFAULT};
    MQMD2 md = {MQMD2_DEFAULT};
    MQPMO pmo = {MQPMO_DEFAULT};
    MQGMO gmo = {MQGMO_DEFAULT};
    MQCNO cno = {MQCNO_DEFAULT};
    MQCSP csp = {MQCSP_DEFAULT};
    MQCHARV every = {MQPROP_INQUIRE_ALL};
    MQHCONN connection;
    MQHOBJ queue;
    MQLONG length, is_last = 0;
    char text[8] = "", name[MQ_Q_MGR_NAME_LENGTH + 1] = "QM1";

    if (count > 1)
        strncpy(od.ObjectName, arguments[1], MQ_Q_NAME_LENGTH);
    cno.Version = MQCNO_CURRENT_VERSION;
    cno.SecurityParmsPtr = &csp;
    MQCONNX(name, &cno, &connection, &completion, &reason);
    ended("MQCONNX");
    MQOPEN(connection, &od, MQOO_OUTPUT | MQOO_INPUT_SHARED, &queue, &completion, &reason);
    ended("MQOPEN");
    memcpy(md.Format, MQFMT_STRING, (size_t)MQ_FORMAT_LENGTH);
    pmo.Options = MQPMO_LOGICAL_ORDER | MQPMO_NO_SYNCPOINT;
    md.MsgFlags = MQMF_MSG_IN_GROUP;
    MQPUT(connection, queue, &md, &pmo, 3, "one", &completion, &reason);
    ended("MQPUT");
    md.MsgFlags = MQMF_LAST_MSG_IN_GROUP;
    MQPUT(connection, queue, &md, &pmo, 3, "two", &completion, &reason);
    ended("MQPUT");
    gmo.Version = MQGMO_VERSION_2;
    gmo.MatchOptions = MQMO_NONE;
    gmo.Options = MQGMO_LOGICAL_ORDER | MQGMO_ALL_MSGS_AVAILABLE | MQGMO_NO_SYNCPOINT;
    while (!is_last && completion == MQCC_OK) {
        MQGET(connection, queue, &md, &gmo, sizeof text - 1, text, &length, &completion, &reason);
        ended("MQGET");
        is_last = gmo.GroupStatus == MQGS_LAST_MSG_IN_GROUP;
        printf("%s %d %d\n", text, gmo.SegmentStatus == MQSS_NOT_A_SEGMENT, is_last);
    }
    MQDISC(&connection, &completion, &reason);
    ended("MQDISC");
    printf("%.*s %.4s\n", every.VSLength, (char *)every.VSPtr, MQTMC_STRUC_ID);
    return MQCMDL_CURRENT_LEVEL < MQCMDL_LEVEL_910 || sizeof(MQEPH) != MQEPH_STRUC_LENGTH_FIXED;
}
