"""What MQSC has and we have not: its names, why, and which of their values ask for nothing that is missing here.

A script that is moved from MQ names attributes of everything that MQ can do, mostly to say that it is not wanted:
NOTRIGGER, SCOPE(QMGR), CLUSTER(' '). Those are true of our queues, so they are accepted, and the answer says that
they have no effect. Whatever would ask for something is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A name of MQ's that we do not support.

    Args:
        why: a sentence about what is not there.
        harmless: values that ask for nothing; "" is an empty one, None the keyword alone.
        any_value: every value is harmless: it only says more about something that is switched off.
    """

    why: str
    harmless: frozenset[str | None] = frozenset()
    any_value: bool = False

    def is_harmless(self, value: str | None) -> bool:
        if value is None:
            return None in self.harmless
        return self.any_value or value.strip(" ") in self.harmless


def _lacks(why: str, names: str, *harmless: str | None, any_value: bool = False) -> dict[str, Lacking]:
    return {name: Lacking(why=why, harmless=frozenset(harmless), any_value=any_value) for name in names.split()}


_CLUSTERS = "there are no clusters"
_CHANNELS = "channels need none of it"
_STATISTICS = "there are no accounting and monitoring records; events of the program are in inorder.client.events"
_DEPTH_EVENTS = "there are no event messages; a hook or `inorder watch` sees the depth"
_ZOS = "it exists only on z/OS"
_AUTHORITY = "there are no authority records: a program that can open the store may do everything"
_PUBLISH = "there is no publish/subscribe"

LACKING_IN_QUEUES: Final[Mapping[str, Lacking]] = MappingProxyType(
    {
        **_lacks(_CLUSTERS, "CLUSTER CLUSNL", ""),
        **_lacks(_CLUSTERS, "CLWLPRTY CLWLRANK CLWLUSEQ DEFBIND", any_value=True),
        **_lacks(_CLUSTERS, "CLUSINFO CLUSQMGR CLUSQT CLUSDATE CLUSTIME QMID"),
        **_lacks(_CHANNELS, "CLCHNAME", ""),
        **_lacks("a name is known in its store only", "SCOPE", "QMGR"),
        **_lacks("distribution lists are not supported", "DISTL", "NO"),
        **_lacks(_STATISTICS, "ACCTQ MONQ STATQ", "QMGR", "OFF", "NONE"),
        **_lacks(_DEPTH_EVENTS, "QDEPTHHI QDEPTHLO QSVCINT", any_value=True),
        **_lacks(_DEPTH_EVENTS, "QDPHIEV QDPLOEV", "DISABLED"),
        **_lacks(_DEPTH_EVENTS, "QDPMAXEV", any_value=True),  # MQ's default; needs PERFMEV(ENABLED) to do anything
        **_lacks(_DEPTH_EVENTS, "QSVCIEV", "NONE"),
        **_lacks("every put is answered when it is done", "DEFPRESP", "SYNC"),
        **_lacks("each get asks the queue: there is no read-ahead", "DEFREADA", "NO", "DISABLED"),
        **_lacks("messages keep their properties on every way", "PROPCTL", any_value=True),
        **_lacks("the store is one file; `inorder backup` copies it", "IMGRCOVQ", any_value=True),
        **_lacks("a queue has no file of its own", "MAXFSIZE", "DEFAULT"),
        **_lacks("there are no streaming queues", "STREAMQ", ""),
        **_lacks("there are no streaming queues", "STRMQOS", any_value=True),
        **_lacks(
            "it would cut longer lives; our EXPIRY is the life of a message that sets none", "CAPEXPRY", "NOLIMIT"
        ),
        **_lacks("nothing is set through it", "CUSTOM", ""),
        **_lacks("traces are the program's own", "OTELTRAC OTELPCTL", "QMGR", "OFF"),
        **_lacks(_PUBLISH, "TARGTYPE", "QUEUE"),
        **_lacks(_AUTHORITY, "AUTHREC", any_value=True),
        **_lacks("a change takes effect at once, also for open handles", "FORCE", None),
        **_lacks(_ZOS, "CMDSCOPE QSGDISP CFSTRUCT PSID STGCLASS TPIPE"),
    }
)

LACKING_IN_STATUS: Final[Mapping[str, Lacking]] = MappingProxyType(
    {
        **_lacks("the store keeps no such times", "QTIME MONITOR"),
        **_lacks("the store keeps no such times", "LGETDATE LGETTIME LPUTDATE LPUTTIME"),
        **_lacks("a queue has no file of its own", "CURFSIZE CURMAXFS MEDIALOG"),
        **_lacks(_STATISTICS, "MONQ"),
        **_lacks("TYPE(HANDLE) has it", "APPLTAG APPLTYPE CONNAME HSTATE INPUT OUTPUT PID USERID"),
        **_lacks("TYPE(HANDLE) of MQ has it", "ASTATE BROWSE CHANNEL INQUIRE SET TID URID"),
        **_lacks(_ZOS, "CMDSCOPE QSGDISP"),
    }
)

_ON_A_CHANNEL = "channels do not bring connections of programs: CONNAME is where a program has come from"
_LISTENERS = "the store does not know which handles have listeners"
_THREADS = "the store knows the process of a connection, not the thread"
_TOPICS = "there is no publish/subscribe, so each object is a queue"
_MQ_UNITS = "`inorder unit list` shows all units of work"
_CONNECTIONS = {
    **_lacks("the program's name is APPLTAG", "APPLDESC"),
    **_lacks(_ON_A_CHANNEL, "CHANNEL CLIENTID"),
    **_lacks(_LISTENERS, "ASTATE"),
    **_lacks(_THREADS, "TID"),
    **_lacks(_MQ_UNITS, "EXTURID NID QMURID URTYPE"),
    **_lacks(_ZOS, "ASID CMDSCOPE PSBNAME PSTID QSGDISP TASKNO TRANSID URDISP"),
}

LACKING_IN_HANDLES: Final[Mapping[str, Lacking]] = MappingProxyType(
    {**_CONNECTIONS, **_lacks("the store does not keep it of a handle", "BROWSE INQUIRE SET"), **_lacks(_ZOS, "URID")}
)

LACKING_IN_CONNECTIONS: Final[Mapping[str, Lacking]] = MappingProxyType(
    {
        **_CONNECTIONS,
        **_lacks("a connection has one number, which is CONN", "EXTCONN CONNTAG"),
        **_lacks("a connection has no options", "CONNOPTS"),
        **_lacks("the log is the store's own affair", "UOWLOG UOWLOGDA UOWLOGTI"),
        **_lacks("each get asks the queue: there is no read-ahead", "READA"),
        **_lacks(_TOPICS, "DEST DESTQMGR SUBID SUBNAME TOPICSTR"),
    }
)

LACKING_IN_PROCESSES: Final[Mapping[str, Lacking]] = MappingProxyType(
    {**_lacks(_ZOS, "CMDSCOPE QSGDISP"), **_lacks(_AUTHORITY, "AUTHREC", any_value=True)}
)

LACKING_IN_CHANNELS: Final[Mapping[str, Lacking]] = MappingProxyType(
    {
        **_lacks(
            "a channel carries each message once and in order; with FAST, messages that are not persistent may be lost "
            "and overtake others",
            "NPMSPEED",
            "NORMAL",
        ),
        **_lacks(
            "the process that carries a channel has both stores open, so there are no bytes on a line for an exit to "
            "change; MSGEXIT sees each message, and may encrypt or compress its body",
            "SENDEXIT SENDDATA RCVEXIT RCVDATA",
            "",
        ),
        **_lacks("a message exit is given the channel's definition", "MSGDATA", ""),
        **_lacks("who can open both stores may carry a channel", "SCYEXIT SCYDATA MCAUSER USERID PASSWORD", ""),
        **_lacks("retries of messages are MRRTY and MRTMR alone", "MREXIT MRDATA", ""),
        **_lacks("how the other store is reached says CONNAME", "TRPTYPE", any_value=True),
        **_lacks("how the other store is reached says CONNAME", "LOCLADDR MODENAME TPNAME KAINT", "", "AUTO"),
        **_lacks("encryption is that of the connection to PostgreSQL", "SSLCIPH SSLPEER CERTLABL", ""),
        **_lacks("encryption is that of the connection to PostgreSQL", "SSLCAUTH", any_value=True),
        **_lacks("messages are compressed by a message exit", "COMPMSG COMPHDR", "NONE", ""),
        **_lacks("contents stay as they are", "CONVERT", "NO"),
        **_lacks("the limits of the queues count", "MAXMSGL", "0", "4194304"),
        **_lacks("numbers of batches do not wrap", "SEQWRAP", "999999999"),
        **_lacks("a batch ends with its transaction", "BATCHHB", "0"),
        **_lacks("messages keep their properties on every way", "PROPCTL", any_value=True),
        **_lacks("what cannot be put goes to the dead-letter queue, where there is one", "USEDLQ", "YES"),
        **_lacks(_AUTHORITY, "PUTAUT", "DEF"),
        **_lacks("`inorder channel run` is the agent", "MCANAME", ""),
        **_lacks("`inorder channel run` is the agent", "MCATYPE", any_value=True),
        **_lacks(_STATISTICS, "MONCHL STATCHL", "QMGR", "OFF"),
        **_lacks(_CLUSTERS, "CLUSTER CLUSNL", ""),
        **_lacks(_CLUSTERS, "CLWLPRTY CLWLRANK CLWLWGHT NETPRTY", any_value=True),
        **_lacks("only MQ's clients have it", "AFFINITY CLNTWGHT DEFRECON MAXINST MAXINSTC QMNAME SHARECNV"),
        **_lacks("nothing is set through it", "CUSTOM", ""),
        **_lacks(_ZOS, "AUTOSTART CMDSCOPE DEFCDISP QSGDISP"),
    }
)

LACKING_IN_MANAGER: Final[Mapping[str, Lacking]] = MappingProxyType(
    {
        **_lacks(_STATISTICS, "ACCTINT STATINT", any_value=True),
        **_lacks(
            _STATISTICS,
            "ACCTCONO ACCTMQI ACCTQ ACTVCONO ACTVTRC ACTIVREC MONACLS MONCHL MONQ ROUTEREC",
            *"OFF NONE DISABLED".split(),
        ),
        **_lacks(_STATISTICS, "STATACLS STATCHL STATMQI STATQ", *"OFF NONE QMGR".split()),
        **_lacks(
            _DEPTH_EVENTS, "AUTHOREV CHADEV CHLEV CMDEV CONFIGEV INHIBTEV LOCALEV LOGGEREV PERFMEV REMOTEEV", "DISABLED"
        ),
        **_lacks(_DEPTH_EVENTS, "SSLEV STRSTPEV", "DISABLED"),
        **_lacks(_CHANNELS, "CHAD CHADEXIT CHLAUTH DEFCLXQ SCHINIT REVDNS IPADDRV COMMANDQ SCMDSERV"),
        **_lacks(_CHANNELS, "CERTLABL CERTVPOL SSLCRLNL SSLCRYP SSLFIPS SSLKEYR SSLRKEYC SUITEB"),
        **_lacks(_CLUSTERS, "CLWLDATA CLWLEXIT CLWLLEN CLWLMRUC CLWLUSEQ REPOS REPOSNL QMID"),
        **_lacks(_PUBLISH, "PARENT PSCLUS PSMODE PSNPMSG PSNPRES PSRTYCNT PSSYNCPT TREELIFE"),
        **_lacks(_AUTHORITY, "CONNAUTH SPLCAP ADVCAP"),
        **_lacks("the log is the store's own affair", "IMGINTVL IMGLOGLN IMGRCOVO IMGRCOVQ IMGSCHED"),
        **_lacks("the properties of a message have at most 65,536 bytes, on each queue manager", "MAXPROPL"),
        **_lacks("nothing is set through it", "CUSTOM"),
        **_lacks("expired messages are discarded as they are met", "EXPRYINT"),
        **_lacks("`inorder --version` says what this is", "CMDLEVEL CPILEVEL PLATFORM VERSION SYNCPT DISTL"),
        **_lacks("a change takes effect at once", "FORCE", None),
        **_lacks(_ZOS, "CMDSCOPE"),
    }
)

LACKING_CHANNEL_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("SVR", "RQSTR"), "a receiver does not begin a channel: its sender runs it"),
        **dict.fromkeys(("SVRCONN", "CLNTCONN", "AMQP"), "programs open stores themselves"),
        **dict.fromkeys(("CLUSSDR", "CLUSRCVR"), _CLUSTERS),
    }
)

LACKING_VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("REFRESH RESUME SUSPEND".split(), "there are no clusters and no security caches"),
        **dict.fromkeys("SET RVERIFY".split(), _AUTHORITY),
        **dict.fromkeys("ARCHIVE BACKUP RECOVER".split(), "`inorder backup` copies a store"),
        "MOVE": "`inorder move` moves messages",
        "PURGE": "CLEAR QLOCAL empties a queue",
    }
)
LACKING_OBJECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("LISTENER LSTR LSSTATUS LS SERVICE SVSTATUS COMMINFO".split(), _CHANNELS),
        **dict.fromkeys("QCLUSTER QC CLUSQMGR".split(), _CLUSTERS),
        **dict.fromkeys("TOPIC TPSTATUS TPS SUB SBSTATUS SBS PUBSUB TCLUSTER".split(), _PUBLISH),
        **dict.fromkeys("AUTHINFO AUTHREC AUTHSERV CHLAUTH ENTAUTH POLICY".split(), _AUTHORITY),
        **dict.fromkeys("NAMELIST NL".split(), "there are no lists of names"),
        "CONN": "DISPLAY CONN shows connections; one ends with its process, or by its own program",
        **dict.fromkeys("QMSTATUS APSTATUS".split(), "a store has no process of its own"),
        **dict.fromkeys("STGCLASS CFSTRUCT PSID GROUP USAGE TRACE LOG SECURITY BUFFPOOL".split(), _ZOS),
    }
)
