"""The functions of the library, with their parameters: the C stub, the callbacks and the headers are made from these.

Each ends with the parameters CompCode and Reason. A structure is a PMQVOID, as in IBM's prototypes.

Rules: M-2, M-5 of *mqi*.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_TABLE: Final = """
MQBACK     MQHCONN Hconn
MQBEGIN    MQHCONN Hconn, PMQVOID pBeginOptions
MQBUFMH    MQHCONN Hconn, MQHMSG Hmsg, PMQVOID pBufMsgHOpts, PMQVOID pMsgDesc, MQLONG BufferLength, PMQVOID pBuffer,
           PMQLONG pDataLength
MQCB       MQHCONN Hconn, MQLONG Operation, PMQVOID pCallbackDesc, MQHOBJ Hobj, PMQVOID pMsgDesc, PMQVOID pGetMsgOpts
MQCLOSE    MQHCONN Hconn, PMQHOBJ pHobj, MQLONG Options
MQCMIT     MQHCONN Hconn
MQCONN     PMQCHAR pQMgrName, PMQHCONN pHconn
MQCONNX    PMQCHAR pQMgrName, PMQVOID pConnectOpts, PMQHCONN pHconn
MQCRTMH    MQHCONN Hconn, PMQVOID pCrtMsgHOpts, PMQHMSG pHmsg
MQCTL      MQHCONN Hconn, MQLONG Operation, PMQVOID pControlOpts
MQDISC     PMQHCONN pHconn
MQDLTMH    MQHCONN Hconn, PMQHMSG pHmsg, PMQVOID pDltMsgHOpts
MQDLTMP    MQHCONN Hconn, MQHMSG Hmsg, PMQVOID pDltPropOpts, PMQVOID pName
MQGET      MQHCONN Hconn, MQHOBJ Hobj, PMQVOID pMsgDesc, PMQVOID pGetMsgOpts, MQLONG BufferLength, PMQVOID pBuffer,
           PMQLONG pDataLength
MQINQ      MQHCONN Hconn, MQHOBJ Hobj, MQLONG SelectorCount, PMQLONG pSelectors, MQLONG IntAttrCount,
           PMQLONG pIntAttrs, MQLONG CharAttrLength, PMQCHAR pCharAttrs
MQINQMP    MQHCONN Hconn, MQHMSG Hmsg, PMQVOID pInqPropOpts, PMQVOID pName, PMQVOID pPropDesc, PMQLONG pType,
           MQLONG ValueLength, PMQVOID pValue, PMQLONG pDataLength
MQMHBUF    MQHCONN Hconn, MQHMSG Hmsg, PMQVOID pMsgHBufOpts, PMQVOID pName, PMQVOID pMsgDesc, MQLONG BufferLength,
           PMQVOID pBuffer, PMQLONG pDataLength
MQOPEN     MQHCONN Hconn, PMQVOID pObjDesc, MQLONG Options, PMQHOBJ pHobj
MQPUT      MQHCONN Hconn, MQHOBJ Hobj, PMQVOID pMsgDesc, PMQVOID pPutMsgOpts, MQLONG BufferLength, PMQVOID pBuffer
MQPUT1     MQHCONN Hconn, PMQVOID pObjDesc, PMQVOID pMsgDesc, PMQVOID pPutMsgOpts, MQLONG BufferLength, PMQVOID pBuffer
MQSET      MQHCONN Hconn, MQHOBJ Hobj, MQLONG SelectorCount, PMQLONG pSelectors, MQLONG IntAttrCount,
           PMQLONG pIntAttrs, MQLONG CharAttrLength, PMQCHAR pCharAttrs
MQSETMP    MQHCONN Hconn, MQHMSG Hmsg, PMQVOID pSetPropOpts, PMQVOID pName, PMQVOID pPropDesc, MQLONG Type,
           MQLONG ValueLength, PMQVOID pValue
MQSTAT     MQHCONN Hconn, MQLONG StatusType, PMQVOID pStatus
MQSUB      MQHCONN Hconn, PMQVOID pSubDesc, PMQHOBJ pHobj, PMQHOBJ pHsub
MQSUBRQ    MQHCONN Hconn, MQHOBJ Hsub, MQLONG Action, PMQVOID pSubRqOpts
MQXCNVC    MQHCONN Hconn, MQLONG Options, MQLONG SourceCCSID, MQLONG SourceLength, PMQCHAR pSourceBuffer,
           MQLONG TargetCCSID, MQLONG TargetLength, PMQCHAR pTargetBuffer, PMQLONG pDataLength
mqAddByteString     MQHBAG Bag, MQLONG Selector, MQLONG BufferLength, PMQBYTE pBuffer
mqAddInquiry        MQHBAG Bag, MQLONG Selector
mqAddInteger        MQHBAG Bag, MQLONG Selector, MQLONG ItemValue
mqAddIntegerFilter  MQHBAG Bag, MQLONG Selector, MQLONG ItemValue, MQLONG Operator
mqAddString         MQHBAG Bag, MQLONG Selector, MQLONG BufferLength, PMQCHAR pBuffer
mqAddStringFilter   MQHBAG Bag, MQLONG Selector, MQLONG BufferLength, PMQCHAR pBuffer, MQLONG Operator
mqCountItems        MQHBAG Bag, MQLONG Selector, PMQLONG pItemCount
mqCreateBag         MQLONG Options, PMQHBAG pBag
mqDeleteBag         PMQHBAG pBag
mqExecute           MQHCONN Hconn, MQLONG Command, MQHBAG OptionsBag, MQHBAG AdminBag, MQHBAG ResponseBag,
                    MQHOBJ AdminQ, MQHOBJ ResponseQ
mqInquireBag        MQHBAG Bag, MQLONG Selector, MQLONG ItemIndex, PMQHBAG pItemValue
mqInquireByteString MQHBAG Bag, MQLONG Selector, MQLONG ItemIndex, MQLONG BufferLength, PMQBYTE pBuffer,
                    PMQLONG pByteStringLength
mqInquireInteger    MQHBAG Bag, MQLONG Selector, MQLONG ItemIndex, PMQLONG pItemValue
mqInquireItemInfo   MQHBAG Bag, MQLONG Selector, MQLONG ItemIndex, PMQLONG pOutSelector, PMQLONG pItemType
mqInquireString     MQHBAG Bag, MQLONG Selector, MQLONG ItemIndex, MQLONG BufferLength, PMQCHAR pBuffer,
                    PMQLONG pStringLength, PMQLONG pCodedCharSetId
"""
RESULTS: Final = (("PMQLONG", "pCompCode"), ("PMQLONG", "pReason"))


class Function(NamedTuple):
    """A function, with the type and the name of each parameter."""

    name: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def is_bag(self) -> bool:
        """Whether it belongs to the MQAI, which is not supported."""
        return self.name.startswith("mq")

    def prototype(self) -> str:
        """The parameters as C declares them."""
        return ", ".join(" ".join(each) for each in self.parameters)


def _read() -> tuple[Function, ...]:
    found: list[list[str]] = []
    for line in _TABLE.strip().splitlines():
        if line[0].isspace():
            found[-1][1] += " " + line.strip()
        else:
            found.append(line.split(maxsplit=1))
    given = ((name, tuple(each.split() for each in text.split(", "))) for name, text in found)
    return tuple(Function(name, (*((kind, called) for kind, called in of), *RESULTS)) for name, of in given)


FUNCTIONS: Final = _read()
