"""Reason codes: why a call failed or returned a warning.

The numbers up to 8999 are MQ's, under MQ's names without ``MQRC_`` (mq-semantics 7). The list is complete, so that an
interface that speaks MQ finds every code here, including codes that no call raises yet. The numbers from 9001 are
inorder's; their meanings never change. They cover states that MQ lacks (strict order, confirmed calls, named units),
the store, and wrong arguments for which MQ has no reason.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType


class Completion(enum.IntEnum):
    """The outcome of a call: it succeeded, succeeded with a warning, or failed."""

    OK = 0
    WARNING = 1
    FAILED = 2


class Reason(enum.IntEnum):
    """The reason for the outcome of a call. ``REASON_TEXT`` has a sentence for each."""

    NONE = 0
    ALIAS_BASE_Q_TYPE_ERROR = 2001
    ALREADY_CONNECTED = 2002
    BACKED_OUT = 2003
    BUFFER_LENGTH_ERROR = 2005
    CHAR_ATTR_LENGTH_ERROR = 2006
    CHAR_ATTRS_ERROR = 2007
    CHAR_ATTRS_TOO_SHORT = 2008
    CONNECTION_BROKEN = 2009
    DYNAMIC_Q_NAME_ERROR = 2011
    ENVIRONMENT_ERROR = 2012
    EXPIRY_ERROR = 2013
    FEEDBACK_ERROR = 2014
    GET_INHIBITED = 2016
    HANDLE_NOT_AVAILABLE = 2017
    HCONN_ERROR = 2018
    HOBJ_ERROR = 2019
    INHIBIT_VALUE_ERROR = 2020
    INT_ATTR_COUNT_ERROR = 2021
    INT_ATTR_COUNT_TOO_SMALL = 2022
    INT_ATTRS_ARRAY_ERROR = 2023
    SYNCPOINT_LIMIT_REACHED = 2024
    MD_ERROR = 2026
    MISSING_REPLY_TO_Q = 2027
    MSG_TYPE_ERROR = 2029
    MSG_TOO_BIG_FOR_Q = 2030
    MSG_TOO_BIG_FOR_Q_MGR = 2031
    NO_MSG_AVAILABLE = 2033
    NO_MSG_UNDER_CURSOR = 2034
    NOT_AUTHORIZED = 2035
    NOT_OPEN_FOR_BROWSE = 2036
    NOT_OPEN_FOR_INPUT = 2037
    NOT_OPEN_FOR_INQUIRE = 2038
    NOT_OPEN_FOR_OUTPUT = 2039
    NOT_OPEN_FOR_SET = 2040
    OBJECT_CHANGED = 2041
    OBJECT_IN_USE = 2042
    OBJECT_TYPE_ERROR = 2043
    OD_ERROR = 2044
    OPTION_NOT_VALID_FOR_TYPE = 2045
    OPTIONS_ERROR = 2046
    PERSISTENCE_ERROR = 2047
    PERSISTENT_NOT_ALLOWED = 2048
    PRIORITY_EXCEEDS_MAXIMUM = 2049
    PRIORITY_ERROR = 2050
    PUT_INHIBITED = 2051
    Q_DELETED = 2052
    Q_FULL = 2053
    Q_NOT_EMPTY = 2055
    Q_SPACE_NOT_AVAILABLE = 2056
    Q_TYPE_ERROR = 2057
    Q_MGR_NAME_ERROR = 2058
    Q_MGR_NOT_AVAILABLE = 2059
    REPORT_OPTIONS_ERROR = 2061
    SECOND_MARK_NOT_ALLOWED = 2062
    SECURITY_ERROR = 2063
    SELECTOR_COUNT_ERROR = 2065
    SELECTOR_LIMIT_EXCEEDED = 2066
    SELECTOR_ERROR = 2067
    SELECTOR_NOT_FOR_TYPE = 2068
    SYNCPOINT_NOT_AVAILABLE = 2072
    TRIGGER_CONTROL_ERROR = 2075
    TRIGGER_DEPTH_ERROR = 2076
    TRIGGER_MSG_PRIORITY_ERR = 2077
    TRIGGER_TYPE_ERROR = 2078
    TRUNCATED_MSG_ACCEPTED = 2079
    TRUNCATED_MSG_FAILED = 2080
    UNKNOWN_ALIAS_BASE_Q = 2082
    UNKNOWN_OBJECT_NAME = 2085
    UNKNOWN_OBJECT_Q_MGR = 2086
    UNKNOWN_REMOTE_Q_MGR = 2087
    WAIT_INTERVAL_ERROR = 2090
    XMIT_Q_TYPE_ERROR = 2091
    XMIT_Q_USAGE_ERROR = 2092
    NOT_OPEN_FOR_PASS_ALL = 2093
    NOT_OPEN_FOR_PASS_IDENT = 2094
    NOT_OPEN_FOR_SET_ALL = 2095
    NOT_OPEN_FOR_SET_IDENT = 2096
    CONTEXT_HANDLE_ERROR = 2097
    CONTEXT_NOT_AVAILABLE = 2098
    OBJECT_ALREADY_EXISTS = 2100
    OBJECT_DAMAGED = 2101
    RESOURCE_PROBLEM = 2102
    FORMAT_ERROR = 2110
    SOURCE_CCSID_ERROR = 2111
    TARGET_CCSID_ERROR = 2115
    NOT_CONVERTED = 2119
    CONVERTED_MSG_TOO_BIG = 2120
    NO_EXTERNAL_PARTICIPANTS = 2121
    PARTICIPANT_NOT_AVAILABLE = 2122
    OUTCOME_MIXED = 2123
    OUTCOME_PENDING = 2124
    UOW_IN_PROGRESS = 2128
    BO_ERROR = 2134
    MULTIPLE_REASONS = 2136
    Q_MGR_QUIESCING = 2161
    Q_MGR_STOPPING = 2162
    PMO_ERROR = 2173
    REMOTE_Q_NAME_ERROR = 2184
    INCONSISTENT_PERSISTENCE = 2185
    GMO_ERROR = 2186
    STORAGE_MEDIUM_FULL = 2192
    UNEXPECTED_ERROR = 2195
    UNKNOWN_XMIT_Q = 2196
    UNKNOWN_DEF_XMIT_Q = 2197
    DEF_XMIT_Q_TYPE_ERROR = 2198
    DEF_XMIT_Q_USAGE_ERROR = 2199
    MSG_MARKED_BROWSE_CO_OP = 2200
    NO_MSG_LOCKED = 2209
    CALL_IN_PROGRESS = 2219
    INCOMPLETE_GROUP = 2241
    INCOMPLETE_MSG = 2242
    INCONSISTENT_CCSIDS = 2243
    INCONSISTENT_ENCODINGS = 2244
    INCONSISTENT_UOW = 2245
    INVALID_MSG_UNDER_CURSOR = 2246
    MATCH_OPTIONS_ERROR = 2247
    MDE_ERROR = 2248
    MSG_FLAGS_ERROR = 2249
    MSG_SEQ_NUMBER_ERROR = 2250
    OFFSET_ERROR = 2251
    ORIGINAL_LENGTH_ERROR = 2252
    SEGMENT_LENGTH_ZERO = 2253
    UOW_NOT_AVAILABLE = 2255
    WRONG_GMO_VERSION = 2256
    WRONG_MD_VERSION = 2257
    GROUP_ID_ERROR = 2258
    INCONSISTENT_BROWSE = 2259
    XQH_ERROR = 2260
    UOW_CANCELED = 2297
    FUNCTION_NOT_SUPPORTED = 2298
    MSG_TOKEN_ERROR = 2331
    GLOBAL_UOW_CONFLICT = 2351
    LOCAL_UOW_CONFLICT = 2352
    HANDLE_IN_USE_FOR_UOW = 2353
    UOW_ENLISTMENT_ERROR = 2354
    UOW_MIX_NOT_SUPPORTED = 2355
    BACKOUT_THRESHOLD_REACHED = 2362
    MSG_NOT_MATCHED = 2363
    SEGMENTS_NOT_SUPPORTED = 2365
    MSG_NOT_ALLOWED_IN_GROUP = 2417
    SUB_ALREADY_EXISTS = 2432
    PROPERTY_NAME_ERROR = 2442
    SEGMENTATION_NOT_ALLOWED = 2443
    OPTIONS_CHANGED = 2457
    SELECTOR_SYNTAX_ERROR = 2459
    HMSG_ERROR = 2460
    PROPERTY_VALUE_TOO_BIG = 2469
    PROPERTY_NOT_AVAILABLE = 2471
    PROPERTY_TYPE_ERROR = 2473
    PROPERTIES_TOO_BIG = 2478
    MIXED_CONTENT_NOT_ALLOWED = 2498
    MSG_HANDLE_IN_USE = 2499
    SELECTOR_ALWAYS_FALSE = 2504
    PROPERTY_NAME_LENGTH_ERR = 2513
    SELECTOR_INVALID_FOR_TYPE = 2516
    SELECTION_STRING_ERROR = 2519
    CALL_INTERRUPTED = 2549
    NO_SUBS_MATCHED = 2550
    CHL_STATUS_NOT_FOUND = 3065  # MQRCCF_: reasons of commands

    # Our own.
    ORDER_PENDING = 9001
    ORDER_UNSUPPORTED = 9002
    ORDER_SELF_BLOCKED = 9003
    ORDER_DEADLOCK = 9004
    DUPLICATE_MESSAGE = 9005
    NOT_FOUND = 9006
    LOCK_MISMATCH = 9007
    CONFIRM_ID_MISMATCH = 9008
    WRONG_STATE = 9009
    UNIT_EXISTS = 9010
    UNIT_NOT_FOUND = 9011
    FENCED = 9012
    FORKED = 9013
    STORE_FOREIGN = 9014
    STORE_NEWER = 9015
    STORE_DAMAGED = 9016
    ARGUMENT_ERROR = 9017
    CHECKPOINT_TOO_OLD = 9018
    CHECKPOINT_LOST = 9019
    STAGING_GONE = 9020
    UNIT_OF_ANOTHER = 9021
    WAIT_ENDED = 9022
    SEQUENCE_ERROR = 9030
    CHANNEL_STOPPED = 9031
    CHANNEL_IN_DOUBT = 9032
    TOO_MANY_HOPS = 9033
    VETOED = 9034
    EXIT_FAILED = 9035
    UNDELIVERABLE = 9040
    DUPLICATE_PUT = 9050
    DUPLICATE_PENDING = 9051
    LEASE_OVER = 9060
    TOO_MANY_LOG_INS = 9061
    STORE_OLDER = 9070
    TASK_UNKNOWN = 9080
    TASK_ARGUMENTS = 9081
    JOB_FAILED = 9082


_TEXT: dict[Reason, str] = {
    Reason.NONE: "The call succeeded.",
    Reason.ALIAS_BASE_Q_TYPE_ERROR: "The base queue of the alias has a type that an alias may not name.",
    Reason.ALREADY_CONNECTED: "The program is already connected, and got its existing connection.",
    Reason.BACKED_OUT: "The unit of work could not be committed and has been backed out.",
    Reason.BUFFER_LENGTH_ERROR: "The length given for a buffer is not a possible length.",
    Reason.CHAR_ATTR_LENGTH_ERROR: "The length given for the text attributes is not possible.",
    Reason.CHAR_ATTRS_ERROR: "The text attributes given cannot be read or written.",
    Reason.CHAR_ATTRS_TOO_SHORT: "The buffer for text attributes was too short, so some are missing or cut.",
    Reason.CONNECTION_BROKEN: "The connection was lost and its open work is backed out.",
    Reason.DYNAMIC_Q_NAME_ERROR: "The name or name pattern for a dynamic queue is not valid.",
    Reason.ENVIRONMENT_ERROR: "The call cannot be made from this kind of program or connection.",
    Reason.EXPIRY_ERROR: "The expiry of the message is not a valid time to live.",
    Reason.FEEDBACK_ERROR: "The feedback code of the message is not allowed.",
    Reason.GET_INHIBITED: "Getting and browsing are switched off for this queue.",
    Reason.HANDLE_NOT_AVAILABLE: "The connection has reached the queue manager's limit of open queues.",
    Reason.HCONN_ERROR: "The connection handle is not valid, or its connection is closed.",
    Reason.HOBJ_ERROR: "The queue handle is closed or belongs to another connection.",
    Reason.INHIBIT_VALUE_ERROR: "The value for allowing gets or puts is neither on nor off.",
    Reason.INT_ATTR_COUNT_ERROR: "The count given for the integer attributes is not possible.",
    Reason.INT_ATTR_COUNT_TOO_SMALL: "The buffer for integer attributes was too small, so some were left out.",
    Reason.INT_ATTRS_ARRAY_ERROR: "The integer attributes given cannot be read or written.",
    Reason.SYNCPOINT_LIMIT_REACHED: "The unit of work has reached its limit of uncommitted messages.",
    Reason.MD_ERROR: "The message descriptor is not valid.",
    Reason.MISSING_REPLY_TO_Q: "A request, or a message asking for reports, names no queue for the answer.",
    Reason.MSG_TYPE_ERROR: "The type of the message is not allowed.",
    Reason.MSG_TOO_BIG_FOR_Q: "The message is longer than its queue allows.",
    Reason.MSG_TOO_BIG_FOR_Q_MGR: "The message is longer than the queue manager allows.",
    Reason.NO_MSG_AVAILABLE: "No message matches the request, or none came before the wait ended.",
    Reason.NO_MSG_UNDER_CURSOR: "The browse cursor is on no message, or its message is gone.",
    Reason.NOT_AUTHORIZED: "The user may not do this with the object.",
    Reason.NOT_OPEN_FOR_BROWSE: "A browse, or a get under the cursor, needs a handle opened to browse.",
    Reason.NOT_OPEN_FOR_INPUT: "A get that removes needs a handle opened for input.",
    Reason.NOT_OPEN_FOR_INQUIRE: "Reading attributes needs a handle opened to inquire.",
    Reason.NOT_OPEN_FOR_OUTPUT: "A put needs a handle opened for output.",
    Reason.NOT_OPEN_FOR_SET: "Setting attributes through a handle needs one opened to set.",
    Reason.OBJECT_CHANGED: "The definition changed after the open, so the handle can no longer be used.",
    Reason.OBJECT_IN_USE: "Another handle or unit of work is using the object in a way that conflicts with this call.",
    Reason.OBJECT_TYPE_ERROR: "This call cannot open an object of this type.",
    Reason.OD_ERROR: "The object descriptor of an open is not valid.",
    Reason.OPTION_NOT_VALID_FOR_TYPE: "An option of the open or close does not fit the type of the queue.",
    Reason.OPTIONS_ERROR: "An option is unknown, or two options exclude each other.",
    Reason.PERSISTENCE_ERROR: "The persistence of the message is not an allowed value.",
    Reason.PERSISTENT_NOT_ALLOWED: "A temporary dynamic queue cannot hold persistent messages.",
    Reason.PRIORITY_EXCEEDS_MAXIMUM: "The priority is too high, so the message was queued at the highest.",
    Reason.PRIORITY_ERROR: "The priority is not valid.",
    Reason.PUT_INHIBITED: "Putting is switched off for this queue.",
    Reason.Q_DELETED: "The queue was deleted after this handle opened it.",
    Reason.Q_FULL: "The queue has reached its depth limit.",
    Reason.Q_NOT_EMPTY: "The queue cannot be deleted while it holds messages or uncommitted work.",
    Reason.Q_SPACE_NOT_AVAILABLE: "There is no room in the store for the message.",
    Reason.Q_TYPE_ERROR: "A message cannot be put to a queue of this type.",
    Reason.Q_MGR_NAME_ERROR: "The named queue manager does not exist, or this one has another name.",
    Reason.Q_MGR_NOT_AVAILABLE: "The queue manager cannot be reached.",
    Reason.REPORT_OPTIONS_ERROR: "The message asks for reports that are unknown or not made here.",
    Reason.SECOND_MARK_NOT_ALLOWED: "The unit of work has a message marked to skip backout already.",
    Reason.SECURITY_ERROR: "The check of the user's rights failed.",
    Reason.SELECTOR_COUNT_ERROR: "The count of attributes asked for is not possible.",
    Reason.SELECTOR_LIMIT_EXCEEDED: "More attributes were asked for than one call takes.",
    Reason.SELECTOR_ERROR: "There is no such attribute, or it cannot be changed this way.",
    Reason.SELECTOR_NOT_FOR_TYPE: "The attribute does not belong to queues of this type.",
    Reason.SYNCPOINT_NOT_AVAILABLE: "The queue manager offers no units of work for this call.",
    Reason.TRIGGER_CONTROL_ERROR: "The value of the trigger switch is neither on nor off.",
    Reason.TRIGGER_DEPTH_ERROR: "The trigger depth is below one.",
    Reason.TRIGGER_MSG_PRIORITY_ERR: "The lowest priority that triggers is not a possible priority.",
    Reason.TRIGGER_TYPE_ERROR: "The trigger type is not allowed.",
    Reason.TRUNCATED_MSG_ACCEPTED: "The message was longer than the buffer; its beginning was returned.",
    Reason.TRUNCATED_MSG_FAILED: "The message was longer than the buffer and stays on the queue.",
    Reason.UNKNOWN_ALIAS_BASE_Q: "The base queue of the alias does not exist.",
    Reason.UNKNOWN_OBJECT_NAME: "There is no queue of this name.",
    Reason.UNKNOWN_OBJECT_Q_MGR: "There is no queue manager of the name given with the queue.",
    Reason.UNKNOWN_REMOTE_Q_MGR: "No route leads to the queue manager that the name resolves to.",
    Reason.WAIT_INTERVAL_ERROR: "The wait of a get is negative or not a number.",
    Reason.XMIT_Q_TYPE_ERROR: "The transmission queue named is not a local queue.",
    Reason.XMIT_Q_USAGE_ERROR: "The queue named for transmission is not a transmission queue.",
    Reason.NOT_OPEN_FOR_PASS_ALL: "Passing all context needs a handle opened for that.",
    Reason.NOT_OPEN_FOR_PASS_IDENT: "Passing identity context needs a handle opened for that.",
    Reason.NOT_OPEN_FOR_SET_ALL: "Setting all context needs a handle opened for that.",
    Reason.NOT_OPEN_FOR_SET_IDENT: "Setting identity context needs a handle opened for that.",
    Reason.CONTEXT_HANDLE_ERROR: "The handle whose context is to be passed did not save any context.",
    Reason.CONTEXT_NOT_AVAILABLE: "The handle whose context is to be passed has got no message yet.",
    Reason.OBJECT_ALREADY_EXISTS: "An object of this name exists already.",
    Reason.OBJECT_DAMAGED: "The object's data cannot be read.",
    Reason.RESOURCE_PROBLEM: "The call needs a resource that the system or the store lacks.",
    Reason.FORMAT_ERROR: "The message has no format by which its data could be converted.",
    Reason.SOURCE_CCSID_ERROR: "The character set of the message data is not known, so it was not converted.",
    Reason.TARGET_CCSID_ERROR: "The character set asked for is not known, so the data was not converted.",
    Reason.NOT_CONVERTED: "The message data could not be converted and is returned as it was put.",
    Reason.CONVERTED_MSG_TOO_BIG: "The converted data would not fit the buffer, so it was not converted.",
    Reason.NO_EXTERNAL_PARTICIPANTS: "No other resource manager takes part in the global unit of work.",
    Reason.PARTICIPANT_NOT_AVAILABLE: "A resource manager of the global unit of work cannot be reached.",
    Reason.OUTCOME_MIXED: "Some participants committed the unit of work and others backed it out.",
    Reason.OUTCOME_PENDING: "The unit of work is decided but not every participant has answered yet.",
    Reason.UOW_IN_PROGRESS: "A unit of work cannot begin while another is open.",
    Reason.BO_ERROR: "The options given to begin a unit of work are not valid.",
    Reason.MULTIPLE_REASONS: "The destinations of a list had different outcomes, each reported on its own.",
    Reason.Q_MGR_QUIESCING: "The queue manager is about to stop, and the call asked to fail in that case.",
    Reason.Q_MGR_STOPPING: "The queue manager stops and takes no more calls.",
    Reason.PMO_ERROR: "The put options are not a valid structure.",
    Reason.REMOTE_Q_NAME_ERROR: "The remote definition names no queue: it stands for a queue manager.",
    Reason.INCONSISTENT_PERSISTENCE: "The pieces of one group differ in persistence.",
    Reason.GMO_ERROR: "The get options are not a valid structure.",
    Reason.STORAGE_MEDIUM_FULL: "The disk that holds the store is full.",
    Reason.UNEXPECTED_ERROR: "An unexpected failure, for which there is no other reason code.",
    Reason.UNKNOWN_XMIT_Q: "The transmission queue named does not exist.",
    Reason.UNKNOWN_DEF_XMIT_Q: "The queue named as default for transmission does not exist.",
    Reason.DEF_XMIT_Q_TYPE_ERROR: "The default transmission queue is not a local queue.",
    Reason.DEF_XMIT_Q_USAGE_ERROR: "The queue named as default for transmission is not a transmission queue.",
    Reason.MSG_MARKED_BROWSE_CO_OP: "The message chosen by its token is marked by a cooperating browser.",
    Reason.NO_MSG_LOCKED: "There was no lock to release.",
    Reason.CALL_IN_PROGRESS: "Another thread is inside a call on the same connection.",
    Reason.INCOMPLETE_GROUP: "A group was left or interrupted before its last message.",
    Reason.INCOMPLETE_MSG: "A segmented message was left or interrupted before its last segment.",
    Reason.INCONSISTENT_CCSIDS: "The segments differ in character set, so only some were joined.",
    Reason.INCONSISTENT_ENCODINGS: "The segments differ in encoding, so only some were joined.",
    Reason.INCONSISTENT_UOW: "The pieces of one group differ in being inside or outside a unit of work.",
    Reason.INVALID_MSG_UNDER_CURSOR: "A complete message was asked for, but the cursor is on a later piece.",
    Reason.MATCH_OPTIONS_ERROR: "The match is not valid, or does not fit the other options.",
    Reason.MDE_ERROR: "The descriptor extension in the message data is not valid.",
    Reason.MSG_FLAGS_ERROR: "A message flag is unknown, or the flags do not fit together.",
    Reason.MSG_SEQ_NUMBER_ERROR: "The sequence number is, or would become, larger than 999,999,999 or smaller than 1.",
    Reason.OFFSET_ERROR: "The offset of a segment is outside 0 to 999,999,999, or its end would be.",
    Reason.ORIGINAL_LENGTH_ERROR: "The original length that a report about a segment gives is not possible.",
    Reason.SEGMENT_LENGTH_ZERO: "A segment that is not the last holds no data.",
    Reason.UOW_NOT_AVAILABLE: "The call needs a unit of work, and none is available.",
    Reason.WRONG_GMO_VERSION: "The version of the get options is too old for this request.",
    Reason.WRONG_MD_VERSION: "The version of the message descriptor is too old for this request.",
    Reason.GROUP_ID_ERROR: "The group id given does not fit a list of destinations.",
    Reason.INCONSISTENT_BROWSE: "A browse went on in another order, logical or physical, than before.",
    Reason.XQH_ERROR: "The transmission header of the message is not valid.",
    Reason.UOW_CANCELED: "The unit of work was cancelled from outside.",
    Reason.FUNCTION_NOT_SUPPORTED: "The queue manager does not offer this function.",
    Reason.MSG_TOKEN_ERROR: "A message cannot be chosen by its token here.",
    Reason.GLOBAL_UOW_CONFLICT: "The handle is part of another thread's global unit of work.",
    Reason.LOCAL_UOW_CONFLICT: "A global unit of work was asked for while a local one is open.",
    Reason.HANDLE_IN_USE_FOR_UOW: "The handle is in use for a unit of work elsewhere.",
    Reason.UOW_ENLISTMENT_ERROR: "The queue manager could not join the global unit of work.",
    Reason.UOW_MIX_NOT_SUPPORTED: "Local and global units of work cannot be mixed this way.",
    Reason.BACKOUT_THRESHOLD_REACHED: "The message was backed out too often; used in reports.",
    Reason.MSG_NOT_MATCHED: "No consumer wanted the message; used in reports.",
    Reason.SEGMENTS_NOT_SUPPORTED: "A queue indexed by group id takes no segments.",
    Reason.MSG_NOT_ALLOWED_IN_GROUP: "This message may not be a member of a group.",
    Reason.SUB_ALREADY_EXISTS: "A subscription of this name exists already.",
    Reason.PROPERTY_NAME_ERROR: "The name of a property is not valid, or is reserved for MQ.",
    Reason.SEGMENTATION_NOT_ALLOWED: "Messages sent to this destination may not be segmented.",
    Reason.OPTIONS_CHANGED: "The get asks for other options than the messages read ahead were fetched with.",
    Reason.SELECTOR_SYNTAX_ERROR: "The selector does not follow the grammar.",
    Reason.HMSG_ERROR: "The message handle is not valid.",
    Reason.PROPERTY_VALUE_TOO_BIG: "The value of a property was longer than its buffer and was cut off.",
    Reason.PROPERTY_NOT_AVAILABLE: "The message has no property that matches the request.",
    Reason.PROPERTY_TYPE_ERROR: "The value of a property has a type that properties cannot have.",
    Reason.PROPERTIES_TOO_BIG: "The properties of the message are larger than allowed.",
    Reason.MIXED_CONTENT_NOT_ALLOWED: "The name of one property continues the whole name of another.",
    Reason.MSG_HANDLE_IN_USE: "The message handle is in use by another call.",
    Reason.SELECTOR_ALWAYS_FALSE: "The selector can never match a message.",
    Reason.PROPERTY_NAME_LENGTH_ERR: "The name of a property is empty or longer than 4,095 characters.",
    Reason.SELECTOR_INVALID_FOR_TYPE: "A selector was given in a call that reads no messages from a queue.",
    Reason.SELECTION_STRING_ERROR: "The selector is not a text, is empty, or is longer than allowed.",
    Reason.CALL_INTERRUPTED: "The connection was lost before the answer, so the call may or may not have happened.",
    Reason.NO_SUBS_MATCHED: "No subscription wanted the publication.",
    Reason.CHL_STATUS_NOT_FOUND: "No channel of this name runs or has run.",
    Reason.ORDER_PENDING: "A message matches but is withheld to keep order, because an earlier one is not settled.",
    Reason.ORDER_UNSUPPORTED: "Strict order was requested on a queue that keeps no order.",
    Reason.ORDER_SELF_BLOCKED: "Strict order would make the reader wait for its own uncommitted work.",
    Reason.ORDER_DEADLOCK: "Strict order would make readers wait for each other in a circle.",
    Reason.DUPLICATE_MESSAGE: "The queue already holds a message with this unique id.",
    Reason.NOT_FOUND: "No message has this unique id, or it is in a state in which the call cannot see it.",
    Reason.LOCK_MISMATCH: "The message is locked under another lock id.",
    Reason.CONFIRM_ID_MISMATCH: "The message is held under another confirm id.",
    Reason.WRONG_STATE: "The call is not allowed in the present state of the message or unit of work.",
    Reason.UNIT_EXISTS: "An unsettled unit of work has this name already.",
    Reason.UNIT_NOT_FOUND: "No unsettled unit of work has this name.",
    Reason.FENCED: "A newer owner has taken over this work, so the older one can no longer change it.",
    Reason.FORKED: "The parent of this forked process opened the connection or the queue manager in memory; the "
    "child cannot use it.",
    Reason.STORE_FOREIGN: "The file is not an inorder store. It was not changed.",
    Reason.STORE_NEWER: "The store was written by a newer release, which this one cannot read.",
    Reason.STORE_DAMAGED: "The store is inconsistent or cannot be read.",
    Reason.ARGUMENT_ERROR: "An argument is wrong, and MQ has no specific reason for it.",
    Reason.CHECKPOINT_TOO_OLD: "The checkpoint is older than claims that have ended.",
    Reason.CHECKPOINT_LOST: "The open claim belongs to another checkpoint.",
    Reason.STAGING_GONE: "The rows staged under a name are gone, or some are missing.",
    Reason.UNIT_OF_ANOTHER: "The call would be part of a unit of work that another thread or task has opened.",
    Reason.WAIT_ENDED: "The program has ended the waits of this connection, from another thread.",
    Reason.SEQUENCE_ERROR: "The two sides of a channel disagree about the next batch.",
    Reason.CHANNEL_STOPPED: "An operator has stopped the channel.",
    Reason.CHANNEL_IN_DOUBT: "A batch of the channel is not confirmed here, although the receiver may have it.",
    Reason.TOO_MANY_HOPS: "The message has passed through more queue managers than a route may have.",
    Reason.VETOED: "An exit of the channel rejected the message.",
    Reason.EXIT_FAILED: "An exit of the channel raised an error.",
    Reason.UNDELIVERABLE: "A message can neither be delivered nor become a dead letter.",
    Reason.DUPLICATE_PUT: "A message was already put under this key, so this call put nothing (a warning).",
    Reason.DUPLICATE_PENDING: "Another unit of work, which is not settled, has put a message under this key.",
    Reason.LEASE_OVER: "The lease has ended: it was committed, backed out or has expired.",
    Reason.TOO_MANY_LOG_INS: "Too many log-ins have failed for this user, or from this address.",
    Reason.STORE_OLDER: "The store was written by an older release and must be upgraded first.",
    Reason.TASK_UNKNOWN: "The queue has no task with the name that the message gives.",
    Reason.TASK_ARGUMENTS: "The arguments in a message do not match the parameters of its task.",
    Reason.JOB_FAILED: "The job whose result was asked for is dead, was discarded, or has expired.",
}

REASON_TEXT: Mapping[Reason, str] = MappingProxyType(_TEXT)
"""A sentence for each reason, with its meaning."""
