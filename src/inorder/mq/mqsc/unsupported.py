"""MQSC names that are not supported here, why, and which of their values have no effect anyway.

A script that is moved from MQ names attributes for everything that MQ can do, mostly to switch it off:
NOTRIGGER, SCOPE(QMGR), CLUSTER(' '). These values describe our queues correctly, so they are accepted, and the answer
says that they have no effect. Any other value is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedName:
    """A name in MQ that is not supported here.

    Args:
        why: a sentence about the missing feature.
        harmless: values that have no effect; "" is an empty value, None the keyword alone.
        any_value: whether every value is harmless, because it only concerns a feature that is switched off.
    """

    why: str
    harmless: frozenset[str | None] = frozenset()
    any_value: bool = False

    def is_harmless(self, value: str | None) -> bool:
        if value is None:
            return None in self.harmless
        return self.any_value or value.strip(" ") in self.harmless


def _unsupported(why: str, names: str, *harmless: str | None, any_value: bool = False) -> dict[str, UnsupportedName]:
    return {name: UnsupportedName(why=why, harmless=frozenset(harmless), any_value=any_value) for name in names.split()}


_CLUSTERS = "there are no clusters"
_CHANNELS = "channels do not need it"
_STATISTICS = "there are no accounting and monitoring records; events of the program are in inorder.client.events"
_DEPTH_EVENTS = "there are no event messages; a hook or `inorder watch` sees the depth"
_ZOS = "it exists only on z/OS"
_AUTHORITY = "there are no authority records: any program that can open the store may do everything"
_PUBLISH = "there is no publish/subscribe"

UNSUPPORTED_IN_QUEUES: Final[Mapping[str, UnsupportedName]] = MappingProxyType(
    {
        **_unsupported(_CLUSTERS, "CLUSTER CLUSNL", ""),
        **_unsupported(_CLUSTERS, "CLWLPRTY CLWLRANK CLWLUSEQ DEFBIND", any_value=True),
        **_unsupported(_CLUSTERS, "CLUSINFO CLUSQMGR CLUSQT CLUSDATE CLUSTIME QMID"),
        **_unsupported(_CHANNELS, "CLCHNAME", ""),
        **_unsupported("a name is only known in its store", "SCOPE", "QMGR"),
        **_unsupported("distribution lists are not supported", "DISTL", "NO"),
        **_unsupported(_STATISTICS, "ACCTQ MONQ STATQ", "QMGR", "OFF", "NONE"),
        **_unsupported(_DEPTH_EVENTS, "QDEPTHHI QDEPTHLO QSVCINT", any_value=True),
        **_unsupported(_DEPTH_EVENTS, "QDPHIEV QDPLOEV", "DISABLED"),
        **_unsupported(
            _DEPTH_EVENTS, "QDPMAXEV", any_value=True
        ),  # MQ's default; has no effect without PERFMEV(ENABLED)
        **_unsupported(_DEPTH_EVENTS, "QSVCIEV", "NONE"),
        **_unsupported("every put is synchronous", "DEFPRESP", "SYNC"),
        **_unsupported("each get reads from the queue: there is no read-ahead", "DEFREADA", "NO", "DISABLED"),
        **_unsupported("messages always keep their properties", "PROPCTL", any_value=True),
        **_unsupported("the store is one file; `inorder backup` copies it", "IMGRCOVQ", any_value=True),
        **_unsupported("a queue has no file of its own", "MAXFSIZE", "DEFAULT"),
        **_unsupported("there are no streaming queues", "STREAMQ", ""),
        **_unsupported("there are no streaming queues", "STRMQOS", any_value=True),
        **_unsupported(
            "it would shorten longer expiries; our EXPIRY is for messages that set none", "CAPEXPRY", "NOLIMIT"
        ),
        **_unsupported("it sets nothing here", "CUSTOM", ""),
        **_unsupported("traces are the program's own", "OTELTRAC OTELPCTL", "QMGR", "OFF"),
        **_unsupported(_PUBLISH, "TARGTYPE", "QUEUE"),
        **_unsupported(_AUTHORITY, "AUTHREC", any_value=True),
        **_unsupported("a change takes effect immediately, also for open handles", "FORCE", None),
        **_unsupported(_ZOS, "CMDSCOPE QSGDISP CFSTRUCT PSID STGCLASS TPIPE"),
    }
)

UNSUPPORTED_IN_STATUS: Final[Mapping[str, UnsupportedName]] = MappingProxyType(
    {
        **_unsupported("the store keeps no such times", "QTIME MONITOR"),
        **_unsupported("the store keeps no such times", "LGETDATE LGETTIME LPUTDATE LPUTTIME"),
        **_unsupported("a queue has no file of its own", "CURFSIZE CURMAXFS MEDIALOG"),
        **_unsupported(_STATISTICS, "MONQ"),
        **_unsupported("TYPE(HANDLE) has it", "APPLTAG APPLTYPE CONNAME HSTATE INPUT OUTPUT PID USERID"),
        **_unsupported("TYPE(HANDLE) of MQ has it", "ASTATE BROWSE CHANNEL INQUIRE SET TID URID"),
        **_unsupported(_ZOS, "CMDSCOPE QSGDISP"),
    }
)

_ON_A_CHANNEL = "programs do not connect through channels: CONNAME shows where a program comes from"
_LISTENERS = "the store does not know which handles have listeners"
_THREADS = "the store knows the process of a connection, not the thread"
_TOPICS = "there is no publish/subscribe, so every object is a queue"
_MQ_UNITS = "`inorder unit list` shows all units of work"
_CONNECTIONS = {
    **_unsupported("the program's name is APPLTAG", "APPLDESC"),
    **_unsupported(_ON_A_CHANNEL, "CHANNEL CLIENTID"),
    **_unsupported(_LISTENERS, "ASTATE"),
    **_unsupported(_THREADS, "TID"),
    **_unsupported(_MQ_UNITS, "EXTURID NID QMURID URTYPE"),
    **_unsupported(_ZOS, "ASID CMDSCOPE PSBNAME PSTID QSGDISP TASKNO TRANSID URDISP"),
}

UNSUPPORTED_IN_HANDLES: Final[Mapping[str, UnsupportedName]] = MappingProxyType(
    {
        **_CONNECTIONS,
        **_unsupported("the store does not keep it for a handle", "BROWSE INQUIRE SET"),
        **_unsupported(_ZOS, "URID"),
    }
)

UNSUPPORTED_IN_CONNECTIONS: Final[Mapping[str, UnsupportedName]] = MappingProxyType(
    {
        **_CONNECTIONS,
        **_unsupported("a connection has one number, which is CONN", "EXTCONN CONNTAG"),
        **_unsupported("a connection has no options", "CONNOPTS"),
        **_unsupported("the store manages its log itself", "UOWLOG UOWLOGDA UOWLOGTI"),
        **_unsupported("each get reads from the queue: there is no read-ahead", "READA"),
        **_unsupported(_TOPICS, "DEST DESTQMGR SUBID SUBNAME TOPICSTR"),
    }
)

UNSUPPORTED_IN_PROCESSES: Final[Mapping[str, UnsupportedName]] = MappingProxyType(
    {**_unsupported(_ZOS, "CMDSCOPE QSGDISP"), **_unsupported(_AUTHORITY, "AUTHREC", any_value=True)}
)

UNSUPPORTED_IN_CHANNELS: Final[Mapping[str, UnsupportedName]] = MappingProxyType(
    {
        **_unsupported(
            "no exit changes the bytes on a line; MSGEXIT sees each message, and may encrypt or compress its body",
            "SENDEXIT SENDDATA RCVEXIT RCVDATA",
            "",
        ),
        **_unsupported("a message exit gets the channel's definition", "MSGDATA", ""),
        **_unsupported(
            "the process that runs a channel logs in with the credentials of its account",
            "SCYEXIT SCYDATA USERID PASSWORD",
            "",
        ),
        **_unsupported("only MRRTY and MRTMR control retries of messages", "MREXIT MRDATA", ""),
        **_unsupported("how the other store is reached says CONNAME", "TRPTYPE", any_value=True),
        **_unsupported("how the other store is reached says CONNAME", "LOCLADDR MODENAME TPNAME KAINT", "", "AUTO"),
        **_unsupported("encryption is that of the connection to the server", "SSLCIPH SSLPEER CERTLABL", ""),
        **_unsupported("encryption is that of the connection to the server", "SSLCAUTH", any_value=True),
        **_unsupported("messages are compressed by a message exit", "COMPMSG COMPHDR", "NONE", ""),
        **_unsupported("contents are not converted", "CONVERT", "NO"),
        **_unsupported("the limits of the queues apply", "MAXMSGL", "0", "4194304"),
        **_unsupported("numbers of batches do not wrap", "SEQWRAP", "999999999"),
        **_unsupported("a batch ends with its transaction", "BATCHHB", "0"),
        **_unsupported("messages always keep their properties", "PROPCTL", any_value=True),
        **_unsupported("a message that cannot be put goes to the dead-letter queue, if there is one", "USEDLQ", "YES"),
        **_unsupported(_AUTHORITY, "PUTAUT", "DEF"),
        **_unsupported("`inorder channel run` is the agent", "MCANAME", ""),
        **_unsupported("`inorder channel run` is the agent", "MCATYPE", any_value=True),
        **_unsupported(_STATISTICS, "MONCHL STATCHL", "QMGR", "OFF"),
        **_unsupported(_CLUSTERS, "CLUSTER CLUSNL", ""),
        **_unsupported(_CLUSTERS, "CLWLPRTY CLWLRANK CLWLWGHT NETPRTY", any_value=True),
        **_unsupported("only MQ's clients use it", "AFFINITY CLNTWGHT DEFRECON MAXINST MAXINSTC QMNAME SHARECNV"),
        **_unsupported("it sets nothing here", "CUSTOM", ""),
        **_unsupported(_ZOS, "AUTOSTART CMDSCOPE DEFCDISP QSGDISP"),
    }
)

UNSUPPORTED_IN_MANAGER: Final[Mapping[str, UnsupportedName]] = MappingProxyType(
    {
        **_unsupported(_STATISTICS, "ACCTINT STATINT", any_value=True),
        **_unsupported(
            _STATISTICS,
            "ACCTCONO ACCTMQI ACCTQ ACTVCONO ACTVTRC ACTIVREC MONACLS MONCHL MONQ ROUTEREC",
            *"OFF NONE DISABLED".split(),
        ),
        **_unsupported(_STATISTICS, "STATACLS STATCHL STATMQI STATQ", *"OFF NONE QMGR".split()),
        **_unsupported(
            _DEPTH_EVENTS, "AUTHOREV CHADEV CHLEV CMDEV CONFIGEV INHIBTEV LOCALEV LOGGEREV PERFMEV REMOTEEV", "DISABLED"
        ),
        **_unsupported(_DEPTH_EVENTS, "SSLEV STRSTPEV", "DISABLED"),
        **_unsupported(_CHANNELS, "CHAD CHADEXIT CHLAUTH DEFCLXQ SCHINIT REVDNS IPADDRV COMMANDQ SCMDSERV"),
        **_unsupported(_CHANNELS, "CERTLABL CERTVPOL SSLCRLNL SSLCRYP SSLFIPS SSLKEYR SSLRKEYC SUITEB"),
        **_unsupported(_CLUSTERS, "CLWLDATA CLWLEXIT CLWLLEN CLWLMRUC CLWLUSEQ REPOS REPOSNL QMID"),
        **_unsupported(_PUBLISH, "PARENT PSCLUS PSMODE PSNPMSG PSNPRES PSRTYCNT PSSYNCPT TREELIFE"),
        **_unsupported(_AUTHORITY, "CONNAUTH SPLCAP ADVCAP"),
        **_unsupported("the store manages its log itself", "IMGINTVL IMGLOGLN IMGRCOVO IMGRCOVQ IMGSCHED"),
        **_unsupported("the limit for the properties of a message is always 65,536 bytes", "MAXPROPL"),
        **_unsupported("it sets nothing here", "CUSTOM"),
        **_unsupported("calls discard expired messages that they find", "EXPRYINT"),
        **_unsupported("`inorder --version` shows the version", "CMDLEVEL CPILEVEL PLATFORM VERSION SYNCPT DISTL"),
        **_unsupported("a change takes effect immediately", "FORCE", None),
        **_unsupported(_ZOS, "CMDSCOPE"),
    }
)

UNSUPPORTED_CHANNEL_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("SVR", "RQSTR"), "a receiver does not start a channel: its sender runs it"),
        **dict.fromkeys(("SVRCONN", "CLNTCONN", "AMQP"), "programs open stores directly"),
        **dict.fromkeys(("CLUSSDR", "CLUSRCVR"), _CLUSTERS),
    }
)

UNSUPPORTED_VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("REFRESH RESUME SUSPEND".split(), "there are no clusters and no security caches"),
        **dict.fromkeys("SET RVERIFY".split(), _AUTHORITY),
        **dict.fromkeys("ARCHIVE BACKUP RECOVER".split(), "`inorder backup` copies a store"),
        "MOVE": "`inorder move` moves messages",
        "PURGE": "CLEAR QLOCAL empties a queue",
    }
)
UNSUPPORTED_OBJECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("LISTENER LSTR LSSTATUS LS SERVICE SVSTATUS COMMINFO".split(), _CHANNELS),
        **dict.fromkeys("QCLUSTER QC CLUSQMGR".split(), _CLUSTERS),
        **dict.fromkeys("TOPIC TPSTATUS TPS SUB SBSTATUS SBS PUBSUB TCLUSTER".split(), _PUBLISH),
        **dict.fromkeys("AUTHINFO AUTHREC AUTHSERV CHLAUTH ENTAUTH POLICY".split(), _AUTHORITY),
        **dict.fromkeys("NAMELIST NL".split(), "there are no lists of names"),
        "CONN": "DISPLAY CONN shows connections; only the connected program, or its end, closes one",
        **dict.fromkeys("QMSTATUS APSTATUS".split(), "a store has no process of its own"),
        **dict.fromkeys("STGCLASS CFSTRUCT PSID GROUP USAGE TRACE LOG SECURITY BUFFPOOL".split(), _ZOS),
    }
)
