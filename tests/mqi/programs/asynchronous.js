const mq = require('ibmmq');
const MQC = mq.MQC;
const name = process.argv[2];

function check(verb, error) {
  if (error) {
    console.log(verb, error.mqcc, error.mqrc);
    process.exit(1);
  }
}

mq.Connx('QM1', new mq.MQCNO(), (error, hconn) => {
  check('Connx', error);
  const od = new mq.MQOD();
  od.ObjectName = name;
  od.ObjectType = MQC.MQOT_Q;
  mq.Open(hconn, od, MQC.MQOO_OUTPUT | MQC.MQOO_INPUT_SHARED, (error, hobj) => {
    check('Open', error);
    const put = (text, then) => mq.Put(hobj, new mq.MQMD(), new mq.MQPMO(), text, (error) => { check('Put', error); then(); });
    put('first', () => {
      const buffer = Buffer.alloc(100);
      mq.GetSync(hobj, new mq.MQMD(), new mq.MQGMO(), buffer, (error, length) => {
        check('GetSync', error);
        console.log('GetSync', buffer.toString('utf8', 0, length));
      });
      put('second', () => {
        const gmo = new mq.MQGMO();
        gmo.Options = MQC.MQGMO_NO_SYNCPOINT | MQC.MQGMO_WAIT;
        gmo.WaitInterval = MQC.MQWI_UNLIMITED;
        let seen = 0;
        mq.Get(hobj, new mq.MQMD(), gmo, (error, hobj, gmo, md, data) => {
          check('Get', error);
          console.log('Get', data.toString());
          if (++seen === 1) {
            put('third', () => {});
          } else {
            mq.GetDone(hobj, () => mq.Close(hobj, 0, (error) => {
              check('Close', error);
              mq.Disc(hconn, (error) => { check('Disc', error); console.log('done'); process.exit(0); });
            }));
          }
        });
        mq.Ctl(hconn, MQC.MQOP_START, (error) => check('Ctl', error));
      });
    });
  });
});
